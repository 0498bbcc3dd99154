#pragma once

#include <string>
#include <vector>

#include <txinbox/failed_messages.hpp>

#include "cli/failed_options.hpp"

namespace txinbox::cli {

/// As an aligned table, with ages; on a terminal no wider than that.
std::string failed_table(const std::vector<FailedMessage>& messages);

/// As an array. The payload of each, where it was asked for: as text when it is UTF-8, else in base64.
std::string failed_json(const std::vector<FailedMessage>& messages, bool payloads);

/// `failed list`. Returns the exit status.
int run_failed_list(const FailedOptions& options);

}  // namespace txinbox::cli
