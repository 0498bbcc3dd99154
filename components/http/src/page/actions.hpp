#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/pool.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The result of a change.
struct ActionResult {
  int status = 200;
  std::string text;  ///< JSON: `changed`, or `error`.
};

/// Makes the change of this name, such as "failed/retry". The body is JSON: which messages, and `reason`.
///
/// A change of many messages names how many it expects. If there are more or less now, it changes none. With `at_most`,
/// it changes a part of them.
///
/// Returns none if there is no such change. Errors: `Error` invalid_argument for the body, and those of the library's
/// functions.
std::optional<ActionResult> run_action(Connection&, std::string_view name, std::string_view body,
                                       const std::string& user);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
