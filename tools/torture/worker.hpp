#pragma once

#include <cstdint>
#include <string>

#include "console/database_option.hpp"

namespace txinbox::torture {

/// What the parent tells a worker process on its command line; the database's URL, which can hold a
/// password, comes in the environment.
struct WorkerOptions {
  unsigned number = 0;  ///< From 1, another one for each process that was started.
  std::uint64_t seed = 0;
  unsigned threads = 1;
  std::string subject = "tx";
  std::string name;  ///< Of this storm, for the server's list of sessions.
  std::string sink;  ///< This process is a relay, which publishes to this file. Empty: it consumes.
};

/// Consumes what comes on standard input and answers on standard output until the input ends.
///
/// While the database cannot be reached, it tries again without a limit: the parent decides when to stop.
/// @return the exit status.
int run_worker(const WorkerOptions& options, const cli::DatabaseOption& database);

}  // namespace txinbox::torture
