#pragma once

#include "cli/failed_options.hpp"

namespace txinbox::cli {

// `failed retry` and `failed discard`. Each returns the exit status: 1 when no message was changed.

int run_failed_retry(const FailedOptions& options);
int run_failed_discard(const FailedOptions& options);

}  // namespace txinbox::cli
