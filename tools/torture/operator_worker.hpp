#pragma once

#include "console/database_option.hpp"
#include "torture/worker.hpp"

namespace txinbox::torture {

/// Runs `redrive` and `redrive_stored` again and again, and a relay for the outbox, until standard input ends. The
/// dead letters are in the parent, which is the broker.
///
/// The kind "early" acknowledges a dead letter before the broker has confirmed that it was published again. It is
/// broken on purpose. @return the exit status.
int run_operator(const WorkerOptions& options, const cli::DatabaseOption& database);

}  // namespace txinbox::torture
