#pragma once

#include <exception>
#include <string>

#include <txinbox/result.hpp>

namespace txinbox::cli {

/// The text of an error that occurred before any value was bound. It contains the server's text.
inline std::string describe_setup_error(const std::exception_ptr& error) { return describe_error(error, true); }

}  // namespace txinbox::cli
