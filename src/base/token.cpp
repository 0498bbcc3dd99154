#include "base/token.hpp"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Token Token::random() {
  // Use the operating system's source. A generator of our own would need a new seed after each fork().
  Token token;
  if (::getentropy(token.bytes_.data(), token.bytes_.size()) != 0) {
    throw std::system_error(errno, std::generic_category(), "getentropy");
  }
  return token;
}

Token Token::of(std::string_view bytes) noexcept {
  Token token;
  bytes.copy(token.bytes_.data(), token.bytes_.size());
  return token;
}

std::string Token::hex() const { return to_hex(bytes()); }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
