#include <txinbox/redrive.hpp>

#include "admin/failed_change.hpp"
#include "outbox/outgoing_message.hpp"
#include "tables/outbox_message_table.hpp"
#include "tables/outbox_scope.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

std::size_t redrive_stored(ConnectionRef connection, const std::string& topic, const FailedFilter& filter,
                           const std::optional<OperatorAction>& by) {
  (void)detail::row_of({.topic = topic});  // checks the topic
  if (filter.state.value_or(FailedState::parked) != FailedState::parked) return 0;
  FailedFilter parked = filter;
  parked.state = FailedState::parked;
  return detail::change_failed(connection, parked, detail::FailedRows::with_payload, by, "redrive_stored",
                               [&](backend::Session& session, const FailedMessage& message) {
                                 return detail::let_run(session, message) &&
                                        detail::add_stored_payload(session, topic, message.consumer,
                                                                   message.business_key, detail::random_message_id());
                               });
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
