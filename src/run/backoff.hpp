#pragma once

#include <chrono>
#include <random>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The waits between the runs of one message: each is twice the one before, up to a bound. A random part of up to one
/// half is taken off, so that messages which failed together do not run again together. Other than in `RetryPolicy`, a
/// wait is never near zero: the message failed for a reason that a moment does not mend.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest);

  /// The wait after this many failures, at least 1.
  std::chrono::milliseconds after(int failures);

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::minstd_rand random_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
