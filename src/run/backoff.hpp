#pragma once

#include <chrono>
#include <cstdint>
#include <random>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The waits between the runs of one message. Each wait is twice the previous one, up to a maximum. A random part, at
/// most one half, is subtracted. So messages that failed together do not run again together. A wait is never near zero,
/// unlike in `RetryPolicy`: a short wait does not remove the reason why the message failed.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest, std::uint32_t seed);

  /// The wait after this number of failures, which is at least 1.
  std::chrono::milliseconds after(int failures);

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::minstd_rand random_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
