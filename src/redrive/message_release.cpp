#include "redrive/message_release.hpp"

#include <txinbox/error.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string MessageRelease::let_run(Connection& connection, const DeadLetterInfo& info) {
  // The database knows nothing about a key that cannot be read, or that is not valid.
  if (info.business_key.empty()) return {};
  try {
    const auto found = find_message(connection, info.consumer, info.business_key);
    if (!found && options_.consumer.empty() && !is_known(connection, info.consumer)) {
      return "nothing is recorded for its consumer in this database; name the consumer, if it is right";
    }
    if (found && found->state == "torn") return "its message is torn: repair the data, then forget the message";
    if (found && found->state == "discarded") return "its message is discarded; forget the message to let it run";
    if (!options_.dry_run) {
      (void)retry_failed(connection, {.consumer = std::string(info.consumer), .business_key = info.business_key},
                         options_.by);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_key) throw;
    return "its consumer or its key is not valid";
  }
  return {};
}

bool MessageRelease::is_known(Connection& connection, std::string_view consumer) {
  auto known = known_consumers_.find(consumer);
  if (known == known_consumers_.end()) {
    known = known_consumers_.emplace(consumer, has_consumer(connection, consumer)).first;
  }
  return known->second;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
