#include "tables/list_cursor.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "base/hex.hpp"
#include "base/utc_time.hpp"
#include "message/key.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t hash_bytes = 32;

[[noreturn]] void refuse() {
  throw Error(ErrorCode::invalid_argument, "`after` is not a cursor that this list has given");
}

/// Splits the text at its dots. The first part names the list, and is left out.
std::vector<std::string_view> parts_of(PagedList list, std::string_view text) {
  if (!text.starts_with(static_cast<char>(list)) || text.substr(1, 1) != ".") refuse();
  text.remove_prefix(2);
  std::vector<std::string_view> parts;
  for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.')) {
    parts.push_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0 || hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) refuse();
  return from_hex(hex);
}

}  // namespace

std::string cursor_text(PagedList list, const KeyCursor& row) {
  return fmt::format("{}.{}.{}.{}.{}", static_cast<char>(list), to_hex(row.time), to_hex(row.consumer),
                     to_hex(row.business_key), to_hex(row.content_hash));
}

std::string cursor_text(PagedList list, std::int64_t number) {
  return fmt::format("{}.{}", static_cast<char>(list), number);
}

KeyCursor read_key_cursor(PagedList list, std::string_view text) {
  const auto parts = parts_of(list, text);
  if (parts.size() != 4) refuse();
  KeyCursor row{.time = bytes_of(parts[0]),
                .consumer = bytes_of(parts[1]),
                .business_key = bytes_of(parts[2]),
                .content_hash = bytes_of(parts[3])};
  // Only a failed message can have no time.
  const bool may_lack_time = list == PagedList::failed;
  if (row.time.empty() ? !may_lack_time : !parse_utc(row.time)) refuse();
  if (row.content_hash.size() > hash_bytes) refuse();
  try {
    check_consumer(row.consumer);
    check_business_key(row.business_key);
  } catch (const Error&) {
    refuse();
  }
  return row;
}

std::int64_t read_number_cursor(PagedList list, std::string_view text) {
  const auto parts = parts_of(list, text);
  if (parts.size() != 1) refuse();
  std::int64_t number = 0;
  const char* const end = parts[0].data() + parts[0].size();
  const auto [stop, error] = std::from_chars(parts[0].data(), end, number);
  if (error != std::errc() || stop != end || number < 0) refuse();
  return number;
}

std::string is_behind(const std::vector<std::pair<std::string, std::string>>& row, ListOrder order) {
  const char sign = order == ListOrder::ascending ? '>' : '<';
  std::string columns;
  std::string values;
  for (const auto& [column, value] : row) {
    columns += (columns.empty() ? "" : ", ") + column;
    values += (values.empty() ? "" : ", ") + value;
  }
  return fmt::format("{} {}= {} AND ({}) {} ({})", row.front().first, sign, row.front().second, columns, sign, values);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
