#pragma once

#include <string>

#include <txinbox/http.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// An answer of the guard itself, as problem+json (RFC 9457). `documentation` is a URL that describes the problem. It
/// may be empty.
Response problem(int status, const std::string& title, const std::string& detail,
                 const std::string& documentation = {});

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
