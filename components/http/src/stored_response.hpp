#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/http.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// Whether two names of header fields are the same.
bool same_name(std::string_view a, std::string_view b) noexcept;

/// An answer as it is stored: an HTTP/1.1 message with the header fields that are kept.
///
/// Errors: `Error` invalid_argument for a status, a name or a value that would change the message's structure.
std::string stored_form(const Response& response, const std::vector<std::string>& kept_headers, bool with_body);

/// Reads an answer that `stored_form` has made. None if the result has another form.
std::optional<Response> read_stored_form(std::string_view stored);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
