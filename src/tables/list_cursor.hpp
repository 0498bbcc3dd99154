#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The lists that can be read page by page. The value is the first character of the list's cursors.
enum class PagedList : char { audit = 'a', conflicts = 'c', failed = 'f', leases = 'l', outbox = 'o' };

/// The values that order a list by time and key.
struct KeyCursor {
  std::string time = {};  ///< As `Dialect::exact_time` has made it. Empty: NULL.
  std::string consumer = {};
  std::string business_key = {};
  std::string content_hash = {};  ///< Empty unless it is a list of conflicts.
};

/// These functions return the text of a cursor. It has only letters, digits and dots.
std::string cursor_text(PagedList, const KeyCursor&);
std::string cursor_text(PagedList, std::int64_t number);

/// These functions read such a text.
///
/// Errors: `Error` invalid_argument if the text is not a cursor of this list.
KeyCursor read_key_cursor(PagedList, std::string_view text);
std::int64_t read_number_cursor(PagedList, std::string_view text);

enum class ListOrder { ascending, descending };

/// Returns the condition for the rows that are behind a row in a list. Each pair is a column that orders the list, and
/// the row's value of it, as SQL. The columns are not NULL.
///
/// The comparison of the first column alone is for databases that use no index for the comparison of all columns.
std::string is_behind(const std::vector<std::pair<std::string, std::string>>& row, ListOrder);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
