// An Idempotency-Key. A value that the standard of structured fields accepts must be accepted. A key with and without
// quotes must be the same key. Any other value must be refused as the client's error.
//
// Input: the bytes of the header field's value.

#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "fuzz.hpp"

using namespace txinbox::fuzz;
using txinbox::Error;
using txinbox::http::Request;

namespace {

constexpr std::size_t longest = 128;

Request with(std::vector<txinbox::http::Header> headers) {
  return {.method = "POST", .target = "/orders", .headers = std::move(headers)};
}

// None if the value is refused. The error is invalid_key, for which the client gets 400.
std::optional<std::string> read_key(const std::string& value) {
  static const auto key = txinbox::http::key_in_header();
  try {
    const auto read = key(with({{"idempotency-key", value}}));
    claim(read.has_value(), "an existing field has a key or is refused");
    return read->text;
  } catch (const Error& error) {
    claim(error.code() == txinbox::ErrorCode::invalid_key, "an invalid key is the client's error");
    return std::nullopt;
  }
}

std::string quoted(std::string_view key) {
  std::string text = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

// A second implementation of RFC 9651, section 4.2.5. It works differently: with a state for each character instead of
// a look-ahead.
std::optional<std::string> reference_string(std::string_view text) {
  enum class State { before, inside, escape, after } state = State::before;
  std::string key;
  for (const char c : text) {
    switch (state) {
      case State::before:
        if (c != '"') return std::nullopt;
        state = State::inside;
        break;
      case State::inside:
        if (c == '\\') {
          state = State::escape;
        } else if (c == '"') {
          state = State::after;
        } else if (c == ' ' || is_visible(c)) {
          key += c;
        } else {
          return std::nullopt;
        }
        break;
      case State::escape:
        if (c != '"' && c != '\\') return std::nullopt;
        key += c;
        state = State::inside;
        break;
      case State::after:
        return std::nullopt;
    }
  }
  if (state != State::after) return std::nullopt;
  return key;
}

std::optional<std::string> reference_key(std::string_view value) {
  const auto first = value.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  value = value.substr(first, value.find_last_not_of(" \t") - first + 1);
  std::optional<std::string> key;
  if (value.front() == '"') {
    key = reference_string(value);
  } else {
    for (const char c : value) {
      if (!is_visible(c) || c == '"' || c == ',') return std::nullopt;
    }
    key = std::string(value);
  }
  if (!key || key->empty() || key->size() > longest) return std::nullopt;
  return key;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string value(reinterpret_cast<const char*>(data), size);
  const auto key = read_key(value);
  claim(key == reference_key(value), "a value has the key that the standard defines");
  claim(!unless_refused<Error>([&] {
    return txinbox::http::key_in_header()(with({{"Idempotency-Key", value}, {"IDEMPOTENCY-KEY", value}}));
  }),
        "two fields are refused");
  if (!key) return 0;
  claim(read_key(quoted(*key)) == key, "a key in quotes is the same key");
  claim(read_key(" \t" + value + "\t ") == key, "spaces around a value are not part of it");
  return 0;
}
