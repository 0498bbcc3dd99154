#include "page/target.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

std::string decoded(std::string_view text, bool plus_is_space) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      bytes += ' ';
    } else if (text[i] == '%') {
      unsigned char byte = 0;
      const std::string_view digits = text.substr(i + 1, 2);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
        throw Error(ErrorCode::invalid_argument, "the URL has an escape that is not % and two hexadecimal digits");
      }
      bytes += static_cast<char>(byte);
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

}  // namespace

const std::string& Target::operator[](std::string_view name) const {
  static const std::string empty;
  const auto found = parameters.find(name);
  return found == parameters.end() ? empty : found->second;
}

std::size_t limit_of(const Target& target) {
  const std::string& text = target["limit"];
  if (text.empty()) return default_limit;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size() || limit == 0 || limit > most_limit) {
    throw Error(ErrorCode::invalid_argument, "the parameter limit must be from 1 to 1000");
  }
  return limit;
}

Target read_target(std::string_view target) {
  if (target.find("%00") != std::string_view::npos) throw Error(ErrorCode::invalid_argument, "the URL has a NUL");
  target = target.substr(0, target.find('#'));
  const auto question = target.find('?');
  Target read{.path = decoded(target.substr(0, question), false)};
  if (question == std::string_view::npos) return read;
  for (std::string_view rest = target.substr(question + 1); !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const auto equals = one.find('=');
    std::string value = equals == std::string_view::npos ? std::string() : decoded(one.substr(equals + 1), true);
    read.parameters.emplace(decoded(one.substr(0, equals), true), std::move(value));
  }
  return read;
}

std::string percent_encoded(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '.' || c == '_' || c == '~';
    if (is_plain) {
      text += c;
    } else {
      text.append({'%', digits[byte >> 4U], digits[byte & 15U]});
    }
  }
  return text;
}

std::string link_to(std::string_view path,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> parameters) {
  std::string text(path);
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    text.append(1, std::exchange(separator, '&')).append(name).append(1, '=').append(percent_encoded(value));
  }
  return text;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
