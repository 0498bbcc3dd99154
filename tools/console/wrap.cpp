#include "console/wrap.hpp"

#include <algorithm>

#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

/// The column at which the description of an option or a status begins: after two spaces or more. If the line has no
/// such place, it is its first word.
std::size_t description_in(std::string_view line) {
  const std::size_t word = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", word);
  return gap == std::string_view::npos ? word : std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (count_characters(text) > width) {
    const std::string_view some = first_characters(text, width + 1);
    const std::size_t space = some.find_last_of(' ');
    const bool between = space != std::string_view::npos && space > 0;
    const std::string_view line = between ? some.substr(0, space) : first_characters(text, width);
    lines.emplace_back(line);
    text.remove_prefix(line.size() + (between ? 1 : 0));
  }
  lines.emplace_back(text);
  return lines;
}

std::string wrapped_help(std::string_view help, std::size_t columns) {
  std::string text;
  bool is_example = false;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    const std::string_view line = help.substr(at, end - at);
    at = end + 1;
    is_example = line == "Examples:" || (is_example && !line.empty());
    const std::size_t indent = description_in(line);
    const bool fits = columns == 0 || is_example || count_characters(line) <= columns || indent + 10 > columns;
    if (fits) {
      text += line;
      text += '\n';
      continue;
    }
    const auto lines = wrapped(line.substr(indent), columns - indent);
    text += line.substr(0, indent);
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : std::string(indent, ' ')) + lines[i] + '\n';
  }
  return text;
}

}  // namespace txinbox::cli
