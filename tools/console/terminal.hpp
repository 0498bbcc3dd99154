#pragma once

#include <cstddef>

namespace txinbox::cli {

/// In characters. 0 if unknown.
struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};

/// The size of the terminal that is standard output. Both are 0 if standard output is not a terminal. The size can
/// change at any time.
TerminalSize terminal_size();

/// Whether standard output is a terminal.
bool is_terminal();

}  // namespace txinbox::cli
