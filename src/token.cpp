#include "token.hpp"

#include <cstdint>
#include <cstring>
#include <random>

namespace txinbox::inline TXINBOX_ABI::detail {

Token Token::random() {
  // The operating system's source; a generator of our own would have to be reseeded after a fork.
  thread_local std::random_device source;
  std::array<unsigned char, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint32_t)) {
    const std::uint32_t word = source();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  return Token(bytes);
}

Token::Token(const std::array<unsigned char, 16>& bytes) : bytes_(bytes) {
  constexpr char digits[] = "0123456789abcdef";
  hex_.reserve(32);
  for (const unsigned char byte : bytes) {
    hex_ += digits[byte >> 4U];
    hex_ += digits[byte & 0x0FU];
  }
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
