#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <txinbox/source.hpp>

namespace txinbox::cli {

/// `--from URL`, or the environment variable TXINBOX_FROM; empty if there is neither. The scheme says which component
/// of txinbox knows the broker.
///
/// Errors: `UsageError` if `--from` holds a password; for a scheme that no component has, or whose component is not
///         built in.
std::string source_url(const std::string& option);

/// Opens the source of such a URL.
///
/// Errors: as the component's.
std::unique_ptr<Source> open_source(const std::string& url, const std::string& dead_letters);

/// Whether a word of the command line is a broker's URL with a password, also where no URL belongs.
bool is_source_url_with_password(std::string_view argument);

}  // namespace txinbox::cli
