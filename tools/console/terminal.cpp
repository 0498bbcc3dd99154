#include "console/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace txinbox::cli {

bool is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

TerminalSize terminal_size() {
  winsize size{};
  if (!is_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

}  // namespace txinbox::cli
