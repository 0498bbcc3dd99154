#include <txinbox/redrive.hpp>

#include <algorithm>

#include "admin/failed_change.hpp"
#include "outbox/outgoing_message.hpp"
#include "tables/outbox_message_table.hpp"
#include "tables/outbox_scope.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr std::size_t at_once = 1'000;

FailedFilter filter_of(const StoredRedriveOptions& options) {
  return {.consumer = options.consumer,
          .business_key = options.business_key,
          .state = FailedState::parked,
          .error_class = options.error_class,
          .failed_until = options.failed_until};
}

std::size_t add_all(const ConnectionRef& connection, const std::string& topic, const StoredRedriveOptions& options) {
  FailedFilter filter = filter_of(options);
  filter.with_payload = true;
  const detail::FailedChange add = [&](backend::Session& session, const FailedMessage& message) {
    return !options.stop.stop_requested() && detail::let_run(session, message) &&
           detail::add_stored_payload(session, topic, message.consumer, message.business_key,
                                      detail::random_message_id());
  };
  std::size_t added = 0;
  for (std::size_t now = 1; now > 0 && (options.max == 0 || added < options.max);) {
    filter.limit = options.max == 0 ? at_once : std::min(at_once, options.max - added);
    now = detail::change_failed(connection, filter, options.by, "redrive_stored", add);
    added += now;
  }
  return added;
}

}  // namespace

StoredRedriveSummary redrive_stored(ConnectionRef connection, const std::string& topic,
                                    const StoredRedriveOptions& options) {
  (void)detail::row_of({.topic = topic});  // checks the topic
  const FailedFilter filter = filter_of(options);
  FailedFilter with_payload = filter;
  with_payload.with_payload = true;
  StoredRedriveSummary summary;
  if (options.dry_run) {
    const std::size_t stored = detail::count_failed(connection, with_payload);
    summary.without_payload = detail::count_failed(connection, filter) - stored;
    summary.added = options.max == 0 ? stored : std::min(options.max, stored);
  } else {
    summary.added = add_all(connection, topic, options);
    summary.without_payload = detail::count_failed(connection, filter) - detail::count_failed(connection, with_payload);
  }
  return summary;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
