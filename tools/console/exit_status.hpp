#pragma once

namespace txinbox::cli {

/// The exit statuses of the command. docs/operations/command.md documents them.
enum ExitStatus : int {
  exit_ok = 0,
  exit_found = 1,     // something was found, or a message failed
  exit_usage = 2,     // the command line, or its SQL, is wrong
  exit_database = 3,  // the database cannot be used
  exit_stopped = 4,   // a signal, or nobody reads standard output any more
  exit_broker = 5,    // the broker could not be reached, or did not give all messages
};

}  // namespace txinbox::cli
