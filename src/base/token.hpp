#pragma once

#include <array>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// 128 random bits that nobody else has: they mark the claims of one run of a transaction, and name the
/// guard's savepoint of a session.
class Token {
 public:
  static Token random();

  /// The one of these 16 bytes.
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
