#include "console/table.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "console/utf8.hpp"
#include "console/wrap.hpp"

namespace txinbox::cli {
namespace {

constexpr std::size_t column_gap = 2;
constexpr std::size_t least_width = 8;  // the least width of a cell that is cut or wrapped

/// The begin and the end of a text that is too wide. Keys often have the same begin, and differ at their end.
std::string cut(const std::string& text, std::size_t width) {
  const std::size_t count = count_characters(text);
  if (count <= width) return text;
  const std::size_t of_end = (width - 1) / 2;
  std::string begin(first_characters(text, width - 1 - of_end));
  begin.erase(begin.find_last_not_of(' ') + 1);
  std::string_view end = std::string_view(text).substr(first_characters(text, count - of_end).size());
  end.remove_prefix(std::min(end.find_first_not_of(' '), end.size()));
  return begin + "…" + std::string(end);
}

using Widths = std::vector<std::size_t>;

bool is_right(const std::vector<bool>& right, std::size_t column) { return column < right.size() && right[column]; }

Widths widths_of(const TableRows& cells) {
  Widths widths;
  for (const auto& row : cells) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], count_characters(row[i]));
  }
  return widths;
}

std::size_t total(const Widths& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) +
         column_gap * (widths.empty() ? 0 : widths.size() - 1);
}

/// Makes the widest columns narrower until the table fits, if possible. If two columns are equally wide, it takes the
/// later one, because keys come first.
void shrink(Widths& widths, const std::vector<bool>& right, std::size_t limit) {
  while (total(widths) > limit) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (is_right(right, i) || widths[i] <= least_width) continue;
      if (widest == widths.size() || widths[i] >= widths[widest]) widest = i;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

std::string line_of(const std::vector<std::string>& cells, const Widths& widths, const std::vector<bool>& right) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - count_characters(cells[i]), ' ');
    if (i != 0) line.append(column_gap, ' ');
    line += is_right(right, i) ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// One row of the table. If cells are wrapped, it has several lines.
std::string lines_of(const std::vector<std::string>& row, const Widths& widths, const std::vector<bool>& right,
                     Narrow how) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (how != Narrow::wrap) {
      lines[0][i] = cut(row[i], widths[i]);
      continue;
    }
    const auto pieces = wrapped(row[i], widths[i]);
    if (lines.size() < pieces.size()) lines.resize(pieces.size(), std::vector<std::string>(row.size()));
    for (std::size_t n = 0; n < pieces.size(); ++n) lines[n][i] = pieces[n];
  }
  std::string text;
  for (const auto& line : lines) text += (text.empty() ? "" : "\n") + line_of(line, widths, right);
  return text;
}

std::string format(const TableRows& cells, const std::vector<bool>& right, const TableWidth& width) {
  Widths widths = widths_of(cells);
  if (width.columns > 0) shrink(widths, right, width.columns);
  std::string result;
  for (const auto& row : cells) result += (result.empty() ? "" : "\n") + lines_of(row, widths, right, width.how);
  return result;
}

/// The columns of one table: the first column, and those from `begin` on, as many as fit.
std::vector<std::size_t> columns_from(std::size_t begin, const Widths& widths, std::size_t limit) {
  std::vector<std::size_t> columns{0};
  std::size_t used = widths[0];
  for (std::size_t i = begin; i < widths.size(); ++i) {
    used += column_gap + widths[i];
    if (used > limit && columns.size() > 1) break;
    columns.push_back(i);
  }
  return columns;
}

std::string folded(const TableRows& cells, const std::vector<bool>& right, const TableWidth& width) {
  Widths widths = widths_of(cells);
  if (!widths.empty()) widths[0] = std::max(std::min(widths[0], width.columns / 3), std::min(widths[0], least_width));
  std::string result;
  for (std::size_t begin = 1; begin < widths.size();) {
    const auto columns = columns_from(begin, widths, width.columns);
    TableRows some;
    std::vector<bool> some_right;
    some_right.reserve(columns.size());
    for (const std::size_t i : columns) some_right.push_back(is_right(right, i));
    for (const auto& row : cells) {
      auto& some_row = some.emplace_back();
      for (const std::size_t i : columns) some_row.push_back(i == 0 ? cut(row[0], widths[0]) : row[i]);
    }
    result += (result.empty() ? "" : "\n\n") + format(some, some_right, width);
    begin = columns.back() + 1;
  }
  return result;
}

}  // namespace

std::string format_table(const TableRows& rows, const std::vector<bool>& right, TableWidth width) {
  TableRows cells = rows;
  for (auto& row : cells)
    std::ranges::transform(row, row.begin(), [](const std::string& cell) { return printable(cell); });
  const bool fits = width.columns == 0 || total(widths_of(cells)) <= width.columns;
  return !fits && width.how == Narrow::fold ? folded(cells, right, width) : format(cells, right, width);
}

}  // namespace txinbox::cli
