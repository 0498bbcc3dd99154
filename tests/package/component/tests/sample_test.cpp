#include <doctest/doctest.h>
#include <txinbox/sample.hpp>

TEST_CASE("the checksum is zlib's") { CHECK(txinbox::sample::checksum({.business_key = "order123"}) != 0); }
