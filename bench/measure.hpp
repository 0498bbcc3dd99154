#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/message.hpp>

namespace txinbox::bench {

using Clock = std::chrono::steady_clock;

inline double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// One of the ways that the benchmark compares.
struct Variant {
  std::string name;
  std::function<void(std::span<const Message>)> run;
  bool claims = true;      ///< Whether it writes rows into the inbox.
  bool duplicates = true;  ///< Whether it is also measured with the same messages again.
  bool updates = true;     ///< Whether it does the business work.
};

/// Calls the function for each variant. Each round begins with another variant, so that no variant always has the
/// better position.
template <class F>
void rotated(std::size_t count, int round, F&& one) {
  for (std::size_t i = 0; i < count; ++i) one((i + static_cast<std::size_t>(round)) % count);
}

/// Shows the progress on standard error, if that is a terminal.
class Progress {
 public:
  Progress(std::string what, int steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step();

 private:
  std::string what_;
  int steps_;
  int done_ = 0;
};

}  // namespace txinbox::bench
