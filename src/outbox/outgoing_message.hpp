#pragma once

#include <txinbox/outbox.hpp>

#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Checks a message, and returns it as a row; its `id` may be empty.
///
/// Errors: `Error` invalid_message.
OutboxRow row_of(const OutgoingMessage& message);

/// Adds the headers that the consumer of the handler of this thread adds, if a handler runs. `row` has its id. If these
/// headers break the limits, they are left out: a trace must not stop a message.
void add_handler_headers(const OutgoingMessage& message, OutboxRow& row);

/// Returns the message of a row, and leaves the row without its texts.
///
/// Errors: `JsonError` if another writer has stored headers that are not a JSON object.
OutgoingMessage message_of(OutboxRow&& row);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
