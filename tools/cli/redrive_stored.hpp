#pragma once

#include <string>

#include <txinbox/redrive.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// `redrive --stored`: adds the stored payloads of parked messages to the outbox. It takes these options and their
/// `max`, `dry_run` and `by`. Returns the exit status.
int run_redrive_stored(const DatabaseOption& database, const RedriveOptions& options, bool json);

}  // namespace txinbox::cli
