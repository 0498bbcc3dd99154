#pragma once

#include <string>

#include <txinbox/redrive.hpp>

#include "console/database_option.hpp"

namespace txinbox::cli {

/// `redrive --stored`: adds the stored payloads of parked messages to the outbox. Returns the exit status.
int run_redrive_stored(const DatabaseOption& database, const std::string& topic, StoredRedriveOptions options,
                       bool json);

}  // namespace txinbox::cli
