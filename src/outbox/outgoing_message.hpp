#pragma once

#include <txinbox/outbox.hpp>

#include "tables/outbox_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Checks a message, and returns it as a row; its `id` may be empty. If a handler runs on this thread, the row also has
/// the headers that the handler's consumer adds.
///
/// Errors: `Error` invalid_message.
OutboxRow row_of(const OutgoingMessage& message);

/// Returns the message of a row, and leaves the row without its texts.
///
/// Errors: `JsonError` if another writer has stored headers that are not a JSON object.
OutgoingMessage message_of(OutboxRow&& row);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
