#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace txinbox::cli {

/// What becomes of a table that is wider than it may be. Columns that are aligned at their end are never made narrower:
/// they hold numbers.
enum class Narrow {
  cut,   ///< The widest cells end in an ellipsis.
  wrap,  ///< The widest cells go on in further lines.
  fold,  ///< Columns without room go into another table below, which begins with the first column, too.
};

/// How wide a table may be, in characters; 0: as wide as it is.
struct TableWidth {
  std::size_t columns = 0;
  Narrow how = Narrow::cut;
};

using TableRows = std::vector<std::vector<std::string>>;

/// Rows in aligned columns, two spaces apart; no line feed at the end. Columns for which `right` is true
/// are aligned at their end. Control characters are shown as \xNN. A table that cannot be made as narrow as `width`
/// stays wider.
std::string format_table(const TableRows& rows, const std::vector<bool>& right = {}, TableWidth width = {});

}  // namespace txinbox::cli
