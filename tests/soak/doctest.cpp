// txinbox_test_support refers to doctest, because its precompiled header includes it. The soak has no test cases.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
