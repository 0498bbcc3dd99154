#include "table.hpp"

#include <algorithm>

#include "utf8.hpp"

namespace txinbox::cli {

std::string format_table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::vector<std::string>> cells = rows;
  std::vector<std::size_t> widths;
  for (auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], count_characters(row[i]));
    }
  }
  std::string result;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - count_characters(row[i]), ' ');
      if (i != 0) line += "  ";
      line += i < right.size() && right[i] ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!result.empty()) result += '\n';
    result += line;
  }
  return result;
}

}  // namespace txinbox::cli
