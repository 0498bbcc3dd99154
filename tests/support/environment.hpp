#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace txinbox::test {

/// The value of an environment variable that ctest, a script of tests/ or another test has set.
inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set; run this test by tests/run.sh");
  return value;
}

inline bool has_variable(const char* name) { return std::getenv(name) != nullptr; }

}  // namespace txinbox::test
