#include "cli/known_consumer.hpp"

#include <fmt/format.h>
#include <soci/error.h>
#include <txinbox/inspect.hpp>

#include "console/output.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {

bool say_if_unknown(soci::session& session, const std::string& consumer) {
  if (consumer.empty()) return false;
  try {
    if (has_consumer(session, consumer)) return false;
  } catch (const soci::soci_error&) {
    return false;  // this user may not read all tables; the main result is correct all the same
  }
  message(fmt::format("txinbox: nothing is recorded for a consumer '{}'; txinbox status lists all consumers",
                      printable(consumer)));
  return true;
}

}  // namespace txinbox::cli
