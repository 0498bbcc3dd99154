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
    return false;  // a user who may not read all tables; what was asked for is done
  }
  message(fmt::format("txinbox: nothing is recorded of a consumer '{}'; txinbox status lists those that there are",
                      printable(consumer)));
  return true;
}

}  // namespace txinbox::cli
