#include "telemetry/trace_context.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::string_view traceparent = "traceparent";
constexpr std::string_view tracestate = "tracestate";
constexpr std::string_view baggage = "baggage";

constexpr std::size_t longest_tracestate = 512;  // the length that every participant must carry on
constexpr std::size_t longest_baggage = 4'096;   // HTTP servers often refuse a header line of 8 KiB

using Headers = std::map<std::string, std::string>;

/// Whether the message has this header. HTTP does not distinguish upper and lower case in names.
bool has(const Headers& headers, std::string_view name) {
  return std::ranges::any_of(headers, [&](const auto& each) { return lower_case(each.first) == name; });
}

bool is_lower_hex(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_id(std::string_view text) noexcept {
  return is_lower_hex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

bool is_printable(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Returns the only value of this header. None if there are several, or none.
std::optional<std::string_view> only_value(const Incoming& from, std::string_view name) noexcept {
  if (std::ranges::count(from.headers, name, &IncomingHeader::name) != 1) return std::nullopt;
  return from.header(name);
}

/// Returns the values of a header that is a list. Its parts may be in several headers.
std::string joined_values(const Incoming& from, std::string_view name) {
  std::string joined;
  for (const IncomingHeader& each : from.headers) {
    if (each.name == name && !each.value.empty()) joined.append(joined.empty() ? "" : ",").append(each.value);
  }
  return joined;
}

void copy_list(const Incoming& from, std::string_view name, std::size_t longest, Headers& headers) {
  std::string list = joined_values(from, name);
  const bool can_copy = !list.empty() && list.size() <= longest && is_printable(list);
  if (can_copy && !has(headers, name)) headers.emplace(name, std::move(list));
}

}  // namespace

bool is_traceparent(std::string_view text) noexcept {
  struct Field {
    std::size_t at;
    std::size_t size;
  };
  constexpr Field version{0, 2}, trace{3, 32}, parent{36, 16}, flags{53, 2};
  constexpr std::size_t length = 55;
  const auto field = [&](Field each) { return text.substr(each.at, each.size); };
  if (text.size() < length || text[2] != '-' || text[35] != '-' || text[52] != '-') return false;
  if (!is_lower_hex(field(version)) || field(version) == "ff" || !is_id(field(trace)) || !is_id(field(parent)) ||
      !is_lower_hex(field(flags))) {
    return false;
  }
  return text.size() == length || (field(version) != "00" && text[length] == '-' && is_printable(text));
}

void copy_trace_context(const Incoming& from, Headers& headers) {
  // The two headers belong together, so the message's own `traceparent` or `tracestate` keeps both away.
  const auto parent = only_value(from, traceparent);
  const bool has_own = has(headers, traceparent) || has(headers, tracestate);
  if (parent && is_traceparent(*parent) && parent->size() <= longest_tracestate && !has_own) {
    headers.emplace(traceparent, *parent);
    copy_list(from, tracestate, longest_tracestate, headers);
  }
  copy_list(from, baggage, longest_baggage, headers);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
