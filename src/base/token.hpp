#pragma once

#include <array>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// 128 random bits that nobody else has. A token identifies, for example, the claims of one transaction, a session's
/// guard savepoint, or a process.
class Token {
 public:
  static Token random();

  /// Makes a token of these 16 bytes.
  static Token of(std::string_view bytes) noexcept;

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
  std::string_view bytes() const noexcept { return {bytes_.data(), bytes_.size()}; }

  friend bool operator==(const Token& a, const Token& b) noexcept { return a.bytes_ == b.bytes_; }

 private:
  Token() = default;

  std::array<char, 16> bytes_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
