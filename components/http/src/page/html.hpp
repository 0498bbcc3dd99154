#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// The text with &, <, >, " and ' as character references. A byte that is no character of UTF-8, and a control
/// character, becomes U+FFFD. Each character that changes the direction of text becomes visible, so that a key cannot
/// hide what it is.
std::string escaped(std::string_view text);

/// The exact text for the value of an attribute, with &, <, >, " and ' as character references.
std::string attribute(std::string_view text);

/// An age in its greatest whole unit: 40s, 3m, 2h, 5d.
std::string human_age(long long seconds);

/// A number with a space between each three digits.
std::string grouped(long long number);

/// How a column shows its member.
enum class Shows {
  text,
  number,
  seconds,       ///< An age.
  milliseconds,  ///< An age.
  time,          ///< To the second, in UTC.
  hash,          ///< Its first digits.
};

struct Column {
  std::string_view title;
  std::string_view member;
  Shows shows = Shows::text;
};

/// Makes the content of a cell, instead of its `Column`. An empty result: as the column says.
using CellOf = std::function<std::string(const nlohmann::ordered_json& row, std::string_view member)>;

/// A table with a caption. Without rows, a sentence says that there are none.
std::string table(std::string_view caption, const std::vector<Column>& columns, const nlohmann::ordered_json& rows,
                  const CellOf& cell_of = {});

/// A link. It escapes both.
std::string anchor(std::string_view target, std::string_view text);

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
