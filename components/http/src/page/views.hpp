#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/pool.hpp>

#include "page/target.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The content of a page, as JSON.
struct ViewOptions {
  bool show_payloads;  ///< Otherwise payloads, stored results and error texts are left out.
};

/// Reads the state of all consumers, and which of them are paused.
///
/// Errors: those of `quick_status` and `list_pauses`.
nlohmann::ordered_json read_consumers(Connection&);

/// Reads the list that the page at this path shows. None if there is no such page.
///
/// Errors: `Error` invalid_argument for a parameter, and those of the functions that read the tables.
std::optional<nlohmann::ordered_json> read_view(Connection&, const Target&, const ViewOptions&);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
