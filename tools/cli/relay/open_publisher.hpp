#pragma once

#include <chrono>
#include <string>

#include <txinbox/outbox_relay.hpp>

namespace txinbox::cli {

/// The publisher for a URL of a broker.
///
/// Errors: `UsageError` for a URL with a password, or of a broker that is not built in; what the component throws.
Publisher open_publisher(const std::string& url, std::chrono::milliseconds timeout);

}  // namespace txinbox::cli
