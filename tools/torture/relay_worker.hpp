#pragma once

#include "console/database_option.hpp"
#include "torture/worker.hpp"

namespace txinbox::torture {

/// Publishes the storm's messages to the file `WorkerOptions::sink` until standard input ends. The sink refuses some
/// messages, loses confirmations, fails, and sometimes takes longer than the lease of a relay.
///
/// The kind "delete" removes a message before the sink has taken it. The kind "order" publishes the newest messages
/// first. Both are broken on purpose.
/// @return the exit status.
int run_relay(const WorkerOptions& options, const cli::DatabaseOption& database);

}  // namespace txinbox::torture
