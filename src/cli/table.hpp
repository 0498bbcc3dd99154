#pragma once

#include <string>
#include <vector>

namespace txinbox::cli {

/// Rows in aligned columns, two spaces apart; no line feed at the end. Columns for which `right` is true
/// are aligned at their end. Control characters are shown as \xNN.
std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right = {});

}  // namespace txinbox::cli
