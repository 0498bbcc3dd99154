#pragma once

#include <cstddef>

namespace txinbox::cli {

/// In characters; 0 where it is not known.
struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// Of the terminal that standard output is; both 0 where it is none. It can change at any time.
TerminalSize terminal_size();

/// Whether standard output is a terminal.
bool is_terminal();

}  // namespace txinbox::cli
