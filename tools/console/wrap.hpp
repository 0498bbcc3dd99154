#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace txinbox::cli {

/// Splits a text into lines of at most `width` characters, between words where that is possible.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// Wraps the lines of a help that are too long. A line goes on below the description in it. Examples stay as they are,
/// because users copy them.
///
/// `columns`: 0 changes nothing.
std::string wrapped_help(std::string_view help, std::size_t columns);

}  // namespace txinbox::cli
