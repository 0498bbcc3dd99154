#include "cli/consume/input_format.hpp"

#include <algorithm>
#include <optional>

namespace txinbox::cli {
namespace {

/// Whether each second byte of the begin is NUL, from `first` on, and no other byte is.
bool has_nul_at_every_second(std::string_view line, std::size_t first) {
  constexpr std::size_t enough = 8;
  const std::string_view begin = line.substr(0, std::min(line.size(), enough));
  if (begin.size() < 2) return false;
  for (std::size_t i = 0; i < begin.size(); ++i) {
    if ((begin[i] == '\0') != (i % 2 == first)) return false;
  }
  return true;
}

/// The name of the encoding for iconv.
std::optional<std::string> utf16(std::string_view line) {
  if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF")) return "UTF-16";
  if (has_nul_at_every_second(line, 1)) return "UTF-16LE";
  if (has_nul_at_every_second(line, 0)) return "UTF-16BE";
  return std::nullopt;
}

}  // namespace

InputFormat format_of_invalid(std::string_view line, bool too_long) {
  if (const auto encoding = utf16(line)) {
    return {.hint = "the input is UTF-16, but must be UTF-8; convert it with iconv -f " + *encoding + " -t UTF-8 FILE",
            .is_not_json_lines = true};
  }
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  const char first = line[begin];
  const char last = line[line.find_last_not_of(" \t")];
  if (first == '[') {
    return {.hint =
                "the input begins with '[', so it may be a JSON array, but each line must be an object; convert it "
                "with jq -c '.[]' FILE",
            .is_not_json_lines = !too_long && last != ']'};
  }
  if (first == '{' && last != '}' && !too_long) {
    const bool goes_on = last == '{' || last == '[' || last == ',';
    return {.hint =
                "the first line does not end its object, so an object may have several lines, but each line must be "
                "an object; convert it with jq -c . FILE",
            .is_not_json_lines = goes_on};
  }
  return {};
}

}  // namespace txinbox::cli
