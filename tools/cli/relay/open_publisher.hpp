#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <txinbox/outbox_relay.hpp>

namespace txinbox::cli {

/// The publisher for a URL of a broker.
///
/// Errors: `UsageError` if the URL contains a password, or if the component of the broker is not built in; the errors
///          of the component.
Publisher open_publisher(const std::string& url, std::chrono::milliseconds timeout);

/// Whether a word of the command line is such a URL with a password, also where no URL belongs.
bool is_publisher_url_with_password(std::string_view argument);

}  // namespace txinbox::cli
