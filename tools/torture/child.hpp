#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace txinbox::torture {

/// A program to be started.
struct Child {
  std::string file;
  std::vector<std::string> words;             ///< Its arguments, its own name included.
  std::vector<std::string> environment = {};  ///< NAME=VALUE, which take the place of ours of that name.
  int input = -1;                             ///< For its standard input; -1: ours.
  int output = -1;                            ///< For its standard output; -1: ours.
  bool has_own_group = false;                 ///< So that Ctrl-C at a terminal does not reach it.
};

/// Starts it with no signal blocked or ignored. Descriptors that are close-on-exec do not reach it.
///
/// Errors: `std::system_error`.
/// @return its process id.
pid_t start(const Child& child);

/// How a process ended, as `waitpid` tells it: "status 3", "signal 9".
std::string describe_end(int wait_status);

}  // namespace txinbox::torture
