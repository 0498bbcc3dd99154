#pragma once

#include <exception>
#include <string>

namespace txinbox::cli {

/// What went wrong, in a line. A database's error is told by its code and what the code means, because
/// the server's own text can hold the values of a message.
///
/// `verbose`: the server's text as well.
std::string describe_error(const std::exception_ptr& error, bool verbose = false);

/// An error from before any value was bound: with the server's text.
inline std::string describe_setup_error(const std::exception_ptr& error) { return describe_error(error, true); }

/// The code of a database error: "1", "1064", "42P01". Empty for any other exception.
std::string error_code(const std::exception_ptr& error);

}  // namespace txinbox::cli
