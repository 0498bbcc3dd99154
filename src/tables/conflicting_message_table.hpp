#pragma once

#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Writes down that a delivery of this key came with another content than the row's: one row for each
/// content, which counts. A transaction of its own. Nothing is written when the key's row is gone.
void record_conflict(backend::Session&, std::string_view consumer, const Message&, std::string_view content_hash);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
