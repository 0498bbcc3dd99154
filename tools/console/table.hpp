#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace txinbox::cli {

/// How to print a table that is wider than its limit. Right-aligned columns never become narrower, because they contain
/// numbers.
enum class Narrow {
  cut,   ///< The widest cells have an ellipsis in their middle.
  wrap,  ///< The widest cells continue in further lines.
  fold,  ///< Columns that do not fit go into another table below. It also begins with the first column.
};

/// The greatest width of a table, in characters. 0: no limit.
struct TableWidth {
  std::size_t columns = 0;
  Narrow how = Narrow::cut;
};

using TableRows = std::vector<std::vector<std::string>>;

/// Rows in aligned columns, two spaces apart, without a line feed at the end. Columns for which `right` is true are
/// right-aligned. Control characters are shown as \xNN. If a table cannot be made as narrow as `width`, it is wider.
std::string format_table(const TableRows& rows, const std::vector<bool>& right = {}, TableWidth width = {});

}  // namespace txinbox::cli
