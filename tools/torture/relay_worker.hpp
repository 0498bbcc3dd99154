#pragma once

#include "console/database_option.hpp"
#include "torture/worker.hpp"

namespace txinbox::torture {

/// Publishes the storm's messages to the file `WorkerOptions::sink` until standard input ends. The publisher sometimes
/// refuses messages, loses confirmations, fails, and takes longer than the lease of a relay.
///
/// The kind "delete" confirms a message that the sink does not have. The kind "order" publishes the newest messages
/// first. Both are broken on purpose. @return the exit status.
int run_relay(const WorkerOptions& options, const cli::DatabaseOption& database);

}  // namespace txinbox::torture
