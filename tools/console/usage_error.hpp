#pragma once

#include <string>

#include <txinbox/error.hpp>

namespace txinbox::cli {

/// The command line cannot be meant like this. The text says the remedy and never holds a URL.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& text) : Error(ErrorCode::invalid_argument, text) {}
};

}  // namespace txinbox::cli
