#pragma once

#include <string_view>

#include <txinbox/message.hpp>

#include "base/private_api.hpp"

// Each check throws `Error` invalid_key if a value cannot be stored. The text names the limit and not the value. Such a
// message fails at each delivery, so it is dead-lettered.

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

void check_consumer(std::string_view consumer);
void check_business_key(std::string_view key);
void check_message(const Message& message);
void check_result(std::string_view result, std::size_t most);
void check_max_result(std::size_t max_result);

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
