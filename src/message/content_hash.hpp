#pragma once

#include <array>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The SHA-256 of a message's content; empty if there is no content.
class ContentHash {
 public:
  explicit ContentHash(std::string_view content);

  /// 32 bytes, or empty.
  std::string_view bytes() const noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, 32> bytes_{};
  std::size_t size_ = 0;
};

/// Whether two hashes are of different contents. An empty hash conflicts with nothing.
inline bool is_conflict(std::string_view one, std::string_view other) noexcept {
  return !one.empty() && !other.empty() && one != other;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
