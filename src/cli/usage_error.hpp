#pragma once

#include <stdexcept>

namespace txinbox::cli {

/// The command line cannot be meant like this. The text says the mend and never holds a URL.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace txinbox::cli
