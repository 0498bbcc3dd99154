#pragma once

#include <cstddef>
#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Records that a delivery of this key has other content than the key's row. Each content has one row, which counts its
/// deliveries. At most `most` contents of a key are recorded. Each statement is a transaction of its own. If the key no
/// longer has a row, a new content is not recorded.
void record_conflict(backend::Session&, std::string_view consumer, const Message&, std::string_view content_hash,
                     std::size_t most);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
