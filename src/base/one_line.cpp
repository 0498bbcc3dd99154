#include "base/one_line.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string one_line(std::string_view text) {
  std::string line;
  bool space = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') {
      space = true;
      continue;
    }
    if (space && !line.empty()) line += ' ';
    space = false;
    line += c;
  }
  return line;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
