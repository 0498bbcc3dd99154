#pragma once

#include <string>

namespace txinbox::torture {

/// One thing that does not balance.
struct Imbalance {
  std::string subject;  ///< The business key, or the account.
  std::string what;
  std::string expected;
  std::string found;

  bool operator==(const Imbalance&) const = default;
};

}  // namespace txinbox::torture
