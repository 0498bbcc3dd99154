#pragma once

#include <string_view>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

// The limits of what is kept of a message. Each check throws `Error` invalid_key, with a text that names
// the limit and not the value: such a message fails at each delivery, and is dead-lettered.

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void check_consumer(std::string_view consumer);
void check_business_key(std::string_view key);
void check_message(const Message& message);
void check_result(std::string_view result);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
