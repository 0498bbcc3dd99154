#pragma once

#include <chrono>

#include "measure.hpp"

namespace txinbox::bench {

/// Counts messages and measures their rate. The time begins with the first message, so it does not include the time
/// that a client needs to connect.
class Meter {
 public:
  /// `most`: the number of messages after which it is over, also if there is time left.
  Meter(std::chrono::milliseconds slot, long long most) : slot_(slot), most_(most) {}

  /// Call it for each message. Returns false when it is over.
  bool count() {
    if (done_++ == 0) start_ = Clock::now();
    return done_ < most_ && Clock::now() - start_ < slot_;
  }

  long long done() const { return done_; }
  double per_second() const { return per_second(done_); }

  /// The rate, if only `done` messages were finished.
  double per_second(long long done) const { return static_cast<double>(done) * 1e6 / microseconds_since(start_); }

 private:
  std::chrono::milliseconds slot_;
  long long most_;
  long long done_ = 0;
  Clock::time_point start_ = Clock::now();
};

}  // namespace txinbox::bench
