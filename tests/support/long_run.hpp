#pragma once

#include <cstdlib>

namespace txinbox::test {

/// Whether tests/run.sh --long asks for everything, however long it takes.
inline bool long_run() { return std::getenv("TXINBOX_TEST_LONG") != nullptr; }

}  // namespace txinbox::test
