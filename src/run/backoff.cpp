#include "run/backoff.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Backoff::Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest, std::uint32_t seed)
    : first_(first), longest_(longest), random_(seed) {}

std::chrono::milliseconds Backoff::after(int failures) {
  std::chrono::milliseconds bound = std::min(first_, longest_);
  for (int i = 1; i < failures && bound < longest_; ++i) bound = std::min(bound * 2, longest_);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<std::chrono::milliseconds::rep>(bound.count() / 2, bound.count())(random_));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
