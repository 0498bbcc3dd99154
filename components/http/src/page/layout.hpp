#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "page/html.hpp"
#include "page/pages.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

// The parts that all pages have.

/// The whole page around its content. `current`: the path of the page.
std::string frame(std::string_view current, std::string_view title, const std::string& main,
                  const PageContext& context);

/// A button for a change. Only with JavaScript it is visible. `of`: what it changes.
std::string button(std::string_view name, std::string_view action, const nlohmann::ordered_json& body,
                   std::string_view question, std::string_view of);

/// A member that is a text.
std::string text_in(const nlohmann::ordered_json& row, std::string_view member);

/// Says how old the member `name` of the view is, which was read in the background. It says nothing about a current
/// one. `what` is the name of the result.
std::string age_of(const nlohmann::ordered_json& view, const std::string& name, std::string_view what);

/// Makes the business key of a row a link to all about it. `further` makes the other cells.
CellOf linked(const PageContext& context, CellOf further = {});

/// The links to the first and the next page of a list.
std::string next_page(const Target& target, const nlohmann::ordered_json& view, const PageContext& context);

/// A table of this member of the view. A sentence says so if the view could not read it.
std::string table_of(const nlohmann::ordered_json& view, std::string_view member, std::string_view caption,
                     const std::vector<Column>& columns);

struct Field {
  std::string_view label;
  std::string_view name;
  std::vector<std::string_view> choices = {};  ///< Not empty: one of these, or nothing.
};

/// A form that chooses rows. It needs no JavaScript.
std::string filter_form(const Target& target, const PageContext& context, const std::vector<Field>& fields);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
