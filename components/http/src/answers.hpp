#pragma once

#include <chrono>
#include <exception>
#include <string>

#include <txinbox/http.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

// The answers that a guard gives without the handler, as problem+json (RFC 9457).

/// `documentation` is a URL that describes the problem. It may be empty.
Response problem(int status, const std::string& title, const std::string& detail,
                 const std::string& documentation = {});

/// The answer to a request whose key is not valid.
Response bad_key(const std::string& detail, const GuardOptions&);

/// The same answer with Retry-After: `rest` in whole seconds, from one to `GuardOptions::max_retry_after`.
Response retry_after(Response, std::chrono::milliseconds rest, const GuardOptions&);

/// The answer to a request that can be sent again later.
Response not_available(std::chrono::milliseconds rest, const GuardOptions&);

/// The answer for an error, which `GuardOptions::on_error` gets. 503 if the request only has to be sent again later.
Response failed(const std::exception_ptr&, const Request&, const GuardOptions&) noexcept;

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
