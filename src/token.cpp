#include "token.hpp"

#include <cstdint>
#include <cstring>
#include <random>

#include "hex.hpp"

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

Token::Token(const std::array<unsigned char, 16>& bytes)
    : bytes_(bytes), hex_(to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {}

}  // namespace txinbox::inline TXINBOX_ABI::detail
