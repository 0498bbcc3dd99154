#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <openssl/evp.h>
#include <txinbox/error.hpp>
#include <txinbox/http.hpp>
#include <txinbox/json.hpp>

#include "digest.hpp"
#include "stored_response.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

constexpr std::size_t longest_key = 128;

[[noreturn]] void refuse_key(const std::string& text) { throw Error(ErrorCode::invalid_key, text); }

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

/// The key in the value of a header field: a structured-field string (RFC 9651, section 3.3.3), or text without quotes.
std::string key_in(std::string_view value, const std::string& name) {
  while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
  while (value.ends_with(' ') || value.ends_with('\t')) value.remove_suffix(1);
  std::string key;
  if (value.starts_with('"')) {
    bool is_closed = false;
    for (std::size_t i = 1; i < value.size(); ++i) {
      char c = value[i];
      if (c == '"') {
        is_closed = i + 1 == value.size();
        break;
      }
      if (c == '\\') {
        if (++i == value.size() || (value[i] != '"' && value[i] != '\\')) break;
        c = value[i];
      }
      if (!is_printable(c)) break;
      key += c;
    }
    if (!is_closed)
      refuse_key("the header field " + name + " is not one string in quotes, of printable ASCII characters");
  } else {
    key = value;
    if (std::ranges::any_of(key, [](char c) { return !is_printable(c) || c == ' ' || c == '"' || c == ','; })) {
      refuse_key(
          "the header field " + name +
          " contains a space, a comma, a quote or a character that is not printable ASCII; send one key, in quotes");
    }
  }
  if (key.empty() || key.size() > longest_key) {
    refuse_key("the key in the header field " + name + " has " + std::to_string(key.size()) +
               " characters; it must have 1 to " + std::to_string(longest_key));
  }
  return key;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::invalid_argument, "OpenSSL does not compute SHA-256");
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

std::optional<std::string_view> find_header(const std::vector<Header>& headers, std::string_view name) noexcept {
  const auto found = std::ranges::find_if(headers, [&](const Header& each) { return same_name(each.name, name); });
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

KeyOf key_in_header(std::string name) {
  std::string where = "the header field " + name;
  auto key = [name = std::move(name)](const Request& request) -> std::optional<RequestKey> {
    const auto count =
        std::ranges::count_if(request.headers, [&](const Header& each) { return same_name(each.name, name); });
    if (count == 0) return std::nullopt;
    if (count > 1) refuse_key("the header field " + name + " occurs more than once");
    return key_in(*find_header(request.headers, name), name);
  };
  return {std::move(key), std::move(where)};
}

KeyOf key_of_parameters(std::initializer_list<std::string_view> pointers) {
  std::vector<std::string> values(pointers.begin(), pointers.end());
  const JsonDocument nothing("null");
  for (const std::string& pointer : values) (void)nothing.text(pointer);  // it throws for a pointer that is not valid
  return [values = std::move(values)](const Request& request) -> std::optional<RequestKey> {
    if (values.empty()) return sha256_hex(whole_request(request));
    std::string all;
    append_part(all, request.method);
    append_part(all, request.target);
    const JsonDocument body(request.body);
    for (const std::string& pointer : values) {
      const auto value = body.text(pointer);
      if (!value) refuse_key("there is no " + pointer + " in the body");
      append_part(all, *value);
    }
    RequestKey key(sha256_hex(all));
    key.fingerprint = std::move(all);
    return key;
  };
}

KeyOf key_of(JsonTemplate key) {
  return [key = std::move(key)](const Request& request) -> std::optional<RequestKey> { return key(request.body); };
}

std::string whole_request(const Request& request) {
  std::string all;
  all.reserve(request.body.size() + request.target.size() + 32);
  append_part(all, request.method);
  append_part(all, request.target);
  append_part(all, request.body);
  for (const Part& part : request.parts) {
    for (const std::string* each : {&part.name, &part.file_name, &part.content_type, &part.content}) {
      append_part(all, *each);
    }
  }
  return all;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
