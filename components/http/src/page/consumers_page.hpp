#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/version.hpp>

#include "page/pages.hpp"
#include "page/target.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The content of the page `/`: the consumers, those that are paused, and the sources of this process.
std::string consumers_page(const Target&, const nlohmann::ordered_json& view, const PageContext&);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
