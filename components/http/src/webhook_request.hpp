#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <txinbox/http_publisher.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The HTTP request for a message.
///
/// Errors: `Error` invalid_argument if HTTP cannot carry the headers of the message.
Request webhook_request(const HttpPublisherOptions& options, const std::string& target, const OutgoingMessage& message);

/// Whether a header field can have this value.
bool is_field_value(std::string_view value) noexcept;

/// The wait that the field Retry-After requests, in seconds or as a date. At most an hour, also if the number or the
/// year is very large. 0 if the field is missing or not valid.
std::chrono::milliseconds retry_after(const Response& response, std::chrono::system_clock::time_point now);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
