#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <txinbox/operator_page.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// Why a request is refused.
struct Refused {
  int status;
  std::string_view why;
};

/// Decides who may do what. It looks at the request alone.
class Access {
 public:
  /// Errors: `Error` invalid_argument for the options.
  explicit Access(const OperatorPageOptions& options);

  /// Whether the request names a host by which the page may be reached.
  std::optional<Refused> refuses_host(const Request&) const;

  /// Whether a page of another origin makes the browser load this, and does not lead the operator here.
  std::optional<Refused> refuses_read(const Request&) const;

  /// Whether a page of another origin can have sent this change, or nobody may change anything. Call it after
  /// `refuses_host`.
  std::optional<Refused> refuses_change(const Request&) const;

 private:
  const OperatorPageOptions& options_;
};

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
