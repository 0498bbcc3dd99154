#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <txinbox/http_publisher.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The request that sends a message.
///
/// Errors: `Error` invalid_argument if HTTP cannot carry the headers of the message.
Request webhook_request(const HttpPublisherOptions& options, const std::string& target, const OutgoingMessage& message);

/// Whether this can be the value of a header field.
bool is_field_value(std::string_view value) noexcept;

/// The time of the field Retry-After, seconds or a date, up to an hour; 0 without one, or if it is not valid.
std::chrono::milliseconds retry_after(const Response& response, std::chrono::system_clock::time_point now);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
