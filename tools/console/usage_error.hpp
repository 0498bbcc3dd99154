#pragma once

#include <string>

#include <txinbox/error.hpp>

namespace txinbox::cli {

/// An error in the command line. The text says the remedy, and never contains a URL.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& text) : Error(ErrorCode::invalid_argument, text) {}
};

}  // namespace txinbox::cli
