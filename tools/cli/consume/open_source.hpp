#pragma once

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

/// Opens the source of such a URL.
///
/// Errors: those of the component.
std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters);

/// Whether a word of the command line is a broker's URL with a password. It need not be the value of --from.
bool is_source_url_with_password(std::string_view argument);

}  // namespace txinbox::cli
