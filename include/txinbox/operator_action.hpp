#pragma once

/// @file
/// Who makes a change as an operator, and why.

#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// Who makes a change, and why. `txinbox_audit` keeps both.
struct OperatorAction {
  std::string actor;        ///< The person or the program, 1 to 255 bytes of UTF-8.
  std::string reason = {};  ///< At most 1000 bytes of UTF-8. It can be empty, except where a function says otherwise.
};

TXINBOX_API_END
}  // namespace txinbox
