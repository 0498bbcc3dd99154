#pragma once

#include <nlohmann/json_fwd.hpp>
#include <txinbox/version.hpp>

#include "page/target.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// Takes those consumers out of the view `/` that the target does not ask for, and adds `next` and `counts`.
///
/// Its parameters are `consumer`, `state`, `limit` and `after`. `counts` is about all consumers. `consumer` chooses
/// pauses and sources, too.
///
/// Errors: `Error` invalid_argument for `state` and `limit`.
void choose_consumers(nlohmann::ordered_json& view, const Target&);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
