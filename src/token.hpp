#pragma once

#include <array>
#include <string>

#include <txinbox/version.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

/// 128 random bits, fresh for each run of a transaction. They name the guard's savepoint, which a
/// handler therefore cannot set by accident, and mark the claims of this run.
class Token {
 public:
  static Token random();

  /// 32 lower-case hexadecimal digits.
  const std::string& hex() const noexcept { return hex_; }
  const std::array<unsigned char, 16>& bytes() const noexcept { return bytes_; }

  friend bool operator==(const Token& a, const Token& b) noexcept { return a.bytes_ == b.bytes_; }

 private:
  explicit Token(const std::array<unsigned char, 16>& bytes);

  std::array<unsigned char, 16> bytes_;
  std::string hex_;
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
