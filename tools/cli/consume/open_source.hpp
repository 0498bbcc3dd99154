#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/source.hpp>

namespace txinbox::cli {

/// The URL of `--from`, or of the environment variable TXINBOX_FROM. Empty if there is neither. The scheme of the URL
/// decides which component opens it.
///
/// Errors: `UsageError` if `--from` contains a password, if no component has the scheme, or if its component is not
///          built in.
std::string source_url(const std::string& option);

/// The prefetch of RabbitMQ for a `run` that holds at most `held` messages. Another 600 may wait for a retry.
std::uint16_t prefetch_for(std::size_t held) noexcept;

/// Opens the source of such a URL. `held` is `RunOptions::max_in_flight`: without a prefetch in the URL of RabbitMQ, it
/// decides that.
///
/// Errors: those of the component.
std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters, std::size_t held);

/// Whether a word of the command line is a broker's URL with a password. It need not be the value of --from.
bool is_source_url_with_password(std::string_view argument);

}  // namespace txinbox::cli
