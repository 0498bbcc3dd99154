#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "page/target.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The facts that a page needs besides the rows.
struct PageContext {
  std::string path;            ///< `OperatorPageOptions::path`.
  bool may_write = false;      ///< Whether the buttons are there.
  std::string user = {};       ///< The operator; empty if nobody has signed in.
  bool is_error = false;       ///< It is an error page, perhaps for somebody who has not signed in.
  bool show_payloads = false;  ///< As `OperatorPageOptions::show_payloads`.
  std::function<std::string(const std::string& consumer)> chart = {};
};

/// The HTML of the page at this path, from the JSON of `read_view`.
std::string html_of(const Target&, const nlohmann::ordered_json& view, const PageContext&);

/// A page that says what is wrong.
std::string error_page(int status, std::string_view what, const PageContext&);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
