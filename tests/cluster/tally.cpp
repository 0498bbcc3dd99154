#include "cluster/tally.hpp"

#include <fmt/format.h>
#include <soci/mysql/soci-mysql.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "cluster/load.hpp"

namespace txinbox::test {
namespace {

std::string name_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (const soci::mysql_soci_error& e) {
    return std::to_string(e.err_num_);
  } catch (const HandlerFailed&) {
    return "handler";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

void Tally::note(const std::exception_ptr& error) {
  const std::string name = name_of(error);
  if (!is_transient(error) && name != "handler") ++unexpected;
  const std::lock_guard lock(mutex_);
  ++errors_[name];
}

std::string Tally::text() const {
  std::string text =
      fmt::format("{} keys, {} deliveries, {} consumed, {} duplicates, {} retries, {} redelivered", keys.load(),
                  deliveries.load(), consumed.load(), duplicates.load(), retries.load(), redelivered.load());
  const std::lock_guard lock(mutex_);
  for (const auto& [name, count] : errors_) text += fmt::format(", {} x {}", count, name);
  return text;
}

}  // namespace txinbox::test
