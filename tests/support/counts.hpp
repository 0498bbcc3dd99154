#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace txinbox::test {

/// Prints what a test has counted, for example "count: 200 consumers killed". A step of tests/run.sh adds up the counts
/// of the same name, and prints them in its last line.
template <class Number>
void count(const Number& number, std::string_view what) {
  std::printf("count: %lld %.*s\n", static_cast<long long>(number), static_cast<int>(what.size()), what.data());
  std::fflush(stdout);
}

/// Prints what a test has measured. A step prints it unchanged.
inline void note(const std::string& text) {
  std::printf("note: %s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace txinbox::test
