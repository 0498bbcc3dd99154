#pragma once

#include <cstdint>
#include <string>

#include "console/database_option.hpp"

namespace txinbox::torture {

/// The arguments of a worker process. The database's URL, which can contain a password, is in the environment.
struct WorkerOptions {
  unsigned number = 0;  ///< From 1. Each process that the parent starts has a different number.
  std::uint64_t seed = 0;
  unsigned shards = 1;
  unsigned threads = 1;
  std::string subject = "tx";
  std::string name;          ///< The storm's name, in the server's list of sessions.
  bool is_operator = false;  ///< This process runs `redrive`.
  std::string sink = {};     ///< This process is a relay, which publishes to this file. Empty: it consumes.
};

/// Consumes the assignments on standard input, and writes the answers to standard output, until the input ends.
///
/// While the database cannot be reached, it tries again without a limit: the parent decides when to stop. @return the
/// exit status.
int run_worker(const WorkerOptions& options, const cli::DatabaseOption& database);

}  // namespace txinbox::torture
