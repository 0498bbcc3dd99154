#include "webhook_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <system_error>

#include <txinbox/error.hpp>

#include "shared/ascii.hpp"
#include "stored_response.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The name as a server may see it: in any case, and with a hyphen for an underscore (CGI and WSGI).
std::string folded(std::string_view name) {
  std::string result = component::lower_case(name);
  std::ranges::replace(result, '_', '-');
  return result;
}

/// Fields that a message must not set: they frame the request, belong to the connection, or are set by the publisher.
constexpr std::array<std::string_view, 16> own_fields{
    "authorization", "connection", "content-length",      "expect",      "host",    "idempotency-key",
    "keep-alive",    "te",         "proxy-authorization", "trailer",     "upgrade", "transfer-encoding",
    "txinbox-key",   "date",       "txinbox-topic",       "txinbox-type"};

bool is_token(std::string_view name) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

/// Percent-encodes the bytes that a field cannot carry, and the percent sign.
std::string encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      result += c;
    } else {
      result += '%';
      result += digits[byte >> 4U];
      result += digits[byte & 0xfU];
    }
  }
  return result;
}

/// Empty if this is not a number, or too large for an int.
std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// Reads a date such as "Sun, 06 Nov 1994 08:49:37 GMT". Every server must send dates in this form.
std::optional<std::chrono::sys_seconds> date_in(std::string_view text) {
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  const auto month = months.find(text.substr(8, 3));
  const auto day = number_in(text.substr(5, 2));
  const auto year = number_in(text.substr(12, 4));
  const auto hour = number_in(text.substr(17, 2));
  const auto minute = number_in(text.substr(20, 2));
  const auto second = number_in(text.substr(23, 2));
  if (month == std::string_view::npos || month % 3 != 0 || !day || !year || !hour || !minute || !second) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(month / 3 + 1)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) + seconds(*second);
}

}  // namespace

bool is_field_value(std::string_view value) noexcept {
  return std::ranges::none_of(value, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && c != '\t') || byte == 0x7f;
  });
}

Request webhook_request(const HttpPublisherOptions& options, const std::string& target,
                        const OutgoingMessage& message) {
  Request request{.method = "POST", .target = target, .body = message.payload};
  request.headers.push_back({"Idempotency-Key", encoded(message.id)});
  if (!options.authorization.empty()) request.headers.push_back({"Authorization", options.authorization});
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) request.headers.push_back({name, encoded(value)});
  };
  add("Txinbox-Topic", message.topic);
  add("Txinbox-Key", message.key);
  add("Txinbox-Type", message.type);
  std::set<std::string> names;
  for (const auto& [name, value] : message.headers) {
    if (!is_token(name) || !is_field_value(value)) {
      throw Error(ErrorCode::invalid_argument, "HTTP cannot carry one of its headers");
    }
    const std::string seen = folded(name);
    if (std::ranges::find(own_fields, seen) != own_fields.end()) {
      throw Error(ErrorCode::invalid_argument, "its header " + name + " is reserved for HTTP or the publisher");
    }
    if (!names.insert(seen).second) {
      throw Error(ErrorCode::invalid_argument, "HTTP cannot tell its header " + name + " from another one");
    }
    request.headers.push_back({name, value});
  }
  if (!find_header(request.headers, "Content-Type")) {
    request.headers.push_back({"Content-Type", options.content_type});
  }
  return request;
}

milliseconds retry_after(const Response& response, std::chrono::system_clock::time_point now) {
  constexpr milliseconds longest = std::chrono::hours(1);
  const auto field = find_header(response.headers, "Retry-After");
  if (!field) return milliseconds(0);
  if (!field->empty() && std::ranges::all_of(*field, [](char c) { return c >= '0' && c <= '9'; })) {
    const auto number = number_in(*field);
    return number ? std::min<milliseconds>(longest, seconds(*number)) : longest;
  }
  const auto date = date_in(*field);
  // The nanoseconds of the clock overflow in the year 2262.
  if (!date || *date <= std::chrono::floor<seconds>(now)) return milliseconds(0);
  if (*date - std::chrono::floor<seconds>(now) > longest) return longest;
  return std::min(std::chrono::ceil<milliseconds>(*date - now), longest);
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
