#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "digest.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

constexpr std::size_t time_bytes = 8;
constexpr std::size_t random_bytes = 16;
constexpr std::size_t mac_bytes = 32;
constexpr std::size_t shortest_secret = 32;
constexpr std::size_t signed_bytes = time_bytes + random_bytes;
using Token = std::array<unsigned char, signed_bytes + mac_bytes>;
constexpr std::size_t padding = 1;  ///< The number of padding characters in the Base64 text of 56 bytes.
constexpr std::size_t text_size = (sizeof(Token) + 2) / 3 * 4 - padding;

using Mac = std::array<unsigned char, mac_bytes>;

Mac mac_of(const std::string& secret, const Token& token, std::string_view scope, std::string_view route) {
  std::string all(token.begin(), token.begin() + signed_bytes);
  append_part(all, scope);
  append_part(all, route);
  Mac mac{};
  unsigned size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(all.data());  // NOLINT: OpenSSL's type for bytes
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes, all.size(), mac.data(), &size) ==
          nullptr ||
      size != mac.size()) {
    throw Error(ErrorCode::invalid_argument, "OpenSSL does not compute HMAC-SHA256");
  }
  return mac;
}

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string text_of(const Token& token) {
  std::array<unsigned char, text_size + padding + 1> base64{};
  EVP_EncodeBlock(base64.data(), token.data(), static_cast<int>(token.size()));
  std::string text(base64.begin(), base64.begin() + text_size);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<Token> token_in(std::string text) {
  if (text.size() != text_size) return std::nullopt;
  const auto is_base64url = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  };
  if (!std::ranges::all_of(text, is_base64url)) return std::nullopt;
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  text.append(padding, '=');
  std::array<unsigned char, sizeof(Token) + padding> bytes{};
  const auto* base64 = reinterpret_cast<const unsigned char*>(text.data());  // NOLINT: OpenSSL's type for bytes
  if (EVP_DecodeBlock(bytes.data(), base64, static_cast<int>(text.size())) != static_cast<int>(bytes.size())) {
    return std::nullopt;
  }
  Token token{};
  std::copy_n(bytes.begin(), token.size(), token.begin());
  return token;
}

/// Some bits of the last character are not part of the token. Only one value of these bits is accepted. Otherwise the
/// same token could be written in several ways, which would be different keys.
std::optional<Token> canonical_token_in(const std::string& text) {
  const auto token = token_in(text);
  if (!token || text_of(*token) != text) return std::nullopt;
  return token;
}

}  // namespace

Tokens::Tokens(std::vector<std::string> secrets, std::chrono::seconds valid)
    : secrets_(std::move(secrets)), valid_(valid) {
  if (secrets_.empty() ||
      std::ranges::any_of(secrets_, [](const std::string& secret) { return secret.size() < shortest_secret; })) {
    throw Error(
        ErrorCode::invalid_argument,
        "Tokens needs a secret, and each secret must have at least 32 bytes; make one with `openssl rand -hex 32`");
  }
  if (valid_ < std::chrono::seconds(1) || valid_ > std::chrono::days(36'500)) {
    throw Error(ErrorCode::invalid_argument, "Tokens must be valid for a second to 100 years");
  }
}

std::string Tokens::issue(std::string_view scope, std::string_view route) const {
  Token token{};
  auto end = static_cast<std::uint64_t>(now() + valid_.count());
  for (std::size_t i = time_bytes; i > 0; --i, end >>= 8U) token.at(i - 1) = static_cast<unsigned char>(end & 0xFFU);
  if (RAND_bytes(token.data() + time_bytes, random_bytes) != 1) {
    throw Error(ErrorCode::invalid_argument, "OpenSSL has no random bytes");
  }
  const Mac mac = mac_of(secrets_.front(), token, scope, route);
  std::copy(mac.begin(), mac.end(), token.begin() + signed_bytes);
  return text_of(token);
}

KeyOf Tokens::key(ScopeOf scope, std::string route, std::string header) const {
  KeyOf in_header = key_in_header(std::move(header));
  std::string where = in_header.where();
  auto key_of_token = [secrets = secrets_, scope = std::move(scope), route = std::move(route),
                       text = std::move(in_header)](const Request& request) -> std::optional<RequestKey> {
    auto key = text(request);
    if (!key) return std::nullopt;
    const auto token = canonical_token_in(key->text);
    const std::string whose = scope(request);
    const bool is_ours = token && std::ranges::any_of(secrets, [&](const std::string& secret) {
                           const Mac mac = mac_of(secret, *token, whose, route);
                           return CRYPTO_memcmp(mac.data(), token->data() + signed_bytes, mac.size()) == 0;
                         });
    if (!is_ours) throw Error(ErrorCode::invalid_key, "the token was not issued for this request");
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < time_bytes; ++i) end = end << 8U | token->at(i);
    // Only the claim knows whether the token was used.
    if (static_cast<std::uint64_t>(now()) >= end)
      key->too_late = "the token is too old, and was not used; get a new one";
    return key;
  };
  return {std::move(key_of_token), std::move(where)};
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
