#pragma once

#include <cstdlib>

namespace txinbox::test {

/// Whether a step of tests/run.sh wants all cases, also those that take long.
inline bool long_run() { return std::getenv("TXINBOX_TEST_LONG") != nullptr; }

}  // namespace txinbox::test
