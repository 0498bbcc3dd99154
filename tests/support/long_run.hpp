#pragma once

#include <cstdlib>

namespace txinbox::test {

/// Whether the option --long of tests/run.sh asks for all cases.
inline bool long_run() { return std::getenv("TXINBOX_TEST_LONG") != nullptr; }

}  // namespace txinbox::test
