#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace txinbox::torture {

/// A program to start.
struct Child {
  std::string file;
  std::vector<std::string> words;             ///< Its arguments, beginning with its own name.
  std::vector<std::string> environment = {};  ///< NAME=VALUE. Each replaces the parent's variable with that name.
  int input = -1;                             ///< Its standard input. -1: the parent's.
  int output = -1;                            ///< Its standard output. -1: the parent's.
  bool has_own_group = false;                 ///< So that Ctrl-C at a terminal does not reach it.
};

/// Starts it with no signal blocked or ignored. It does not inherit descriptors that are close-on-exec.
///
/// Errors: `std::system_error`. @return its process id.
pid_t start(const Child& child);

/// How a process ended, from the status of `waitpid`: "status 3", "signal 9".
std::string describe_end(int wait_status);

}  // namespace txinbox::torture
