#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/version.hpp>

#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class Dialect;

enum class ParameterType { text, bytes, integer, uuid, token };

/// A value for a statement. A null pointer means NULL. Integers and UUIDs are passed as text, tokens as 16 bytes.
struct Parameter {
  std::string_view value;
  ParameterType type = ParameterType::text;
};

/// Returns a view that means NULL as a value of a statement, if the text is empty.
inline std::string_view or_null(std::string_view text) noexcept { return text.empty() ? std::string_view() : text; }

/// Returns the values as the client libraries of MariaDB and PostgreSQL take them: their bytes.
inline std::vector<std::string_view> bytes_of(std::span<const Parameter> parameters) {
  std::vector<std::string_view> bytes;
  bytes.reserve(parameters.size());
  for (const Parameter& each : parameters) bytes.push_back(each.value);
  return bytes;
}

/// Returns the number of rows for LIMIT. No database takes a number of more than 63 bits everywhere.
inline std::int64_t limit_of(std::size_t rows) noexcept {
  return static_cast<std::int64_t>(std::min<std::size_t>(rows, std::numeric_limits<std::int64_t>::max()));
}

/// Ends a SELECT of all rows. Without a LIMIT, MariaDB and MySQL return only as many rows as the setting
/// sql_select_limit says.
inline constexpr std::string_view all_rows = "LIMIT 9223372036854775807";

/// A statement that the sessions of a pool keep prepared. Its address identifies it.
struct KeptStatement {
  /// Returns the text of the statement, with a `Dialect::parameter` in the place of each value. The text contains each
  /// value once, in the order of their positions.
  std::string (*sql)(const Dialect&);
};

/// The syntax that differs between databases, for statements that are otherwise the same on all databases. The
/// statements that every delivery runs do not use it. Values are literals in the text. A literal means the same bytes
/// under all settings of the session.
class Dialect {
 public:
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  /// Returns the quoted name of a table of the inbox, with its schema.
  virtual std::string table(std::string_view name) const = 0;

  /// These functions return a literal for a column of text, of bytes, and of an attempt token.
  virtual std::string text(std::string_view) const = 0;
  virtual std::string bytes(std::string_view) const = 0;
  virtual std::string token(const detail::Token&) const = 0;

  /// Returns the placeholder for a value in a `KeptStatement`. `position` counts from 1.
  virtual std::string parameter(ParameterType, int position) const = 0;

  std::string text_or_null(std::string_view value) const { return value.empty() ? "NULL" : text(value); }
  std::string bytes_or_null(std::string_view value) const { return value.empty() ? "NULL" : bytes(value); }

  /// Returns the condition for the rows of one key.
  std::string is_key(std::string_view consumer, std::string_view business_key) const {
    return "consumer = " + text(consumer) + " AND business_key = " + text(business_key);
  }

  /// The time in UTC at which the database evaluates the expression. In an UPDATE that waited for a lock, it is the
  /// time after the wait.
  virtual std::string now() const = 0;

  /// The time of `now` plus this number of milliseconds. It may be a parameter. `now` does not reach it before they
  /// have passed.
  virtual std::string now_plus(std::string_view milliseconds) const = 0;
  std::string now_plus(std::chrono::milliseconds later) const { return now_plus(std::to_string(later.count())); }

  /// The time of `now` in microseconds since 1970.
  virtual std::string now_in_microseconds() const = 0;

  /// The time at which the statement began, minus `age`. The database can search an index with it, but not with `now`.
  virtual std::string before(std::chrono::milliseconds age) const = 0;

  /// The same for an age that a caller has chosen. 100 years count instead of a longer one: no row is older, and it may
  /// not fit into milliseconds.
  std::string before_any(std::chrono::seconds age) const {
    return before(std::min<std::chrono::seconds>(age, std::chrono::days(36'500)));
  }

  /// The whole milliseconds since the time in `column`, rounded down. Negative if that time is in the future, also if
  /// it is less than a millisecond away.
  virtual std::string milliseconds_since(std::string_view column) const = 0;

  /// The time in `column` as UTC text, "YYYY-MM-DD HH:MM:SS.ffffff".
  virtual std::string utc_text(std::string_view column) const = 0;

  /// The time in `column` as text from which `time` makes the same time again. Its order is that of the times. The
  /// database uses no index for this expression.
  virtual std::string exact_time(std::string_view column) const { return utc_text(column); }

  /// Returns a literal for a column of time. `exact` is a text of `exact_time` that `parse_utc` can read.
  virtual std::string time(std::string_view exact) const = 0;

  /// The bytes in `column` as hexadecimal digits.
  virtual std::string hex_text(std::string_view column) const = 0;

  /// The attempt token in `column` as hexadecimal digits.
  virtual std::string hex_token(std::string_view column) const { return hex_text(column); }

  /// Returns the end of a SELECT that reads the latest commit, not the snapshot of a transaction at REPEATABLE READ.
  /// Empty if there is no such thing; see `Session::reads_latest_commits`.
  virtual std::string_view past_snapshot() const { return {}; }

  /// Returns a hint that follows a table's name and makes the server use this index of the table. Empty if the server
  /// chooses a good index itself.
  virtual std::string by_index(std::string_view) const { return {}; }

  /// Returns a LEFT JOIN with a table in which at most one row fulfils the condition. The server finds this row by its
  /// key, one for each row on the left, and never reads the whole table.
  virtual std::string left_join_row(std::string_view table, std::string_view alias, std::string_view condition) const {
    return "LEFT JOIN " + std::string(table) + ' ' + std::string(alias) + " ON " + std::string(condition);
  }

  /// Returns the condition for rows whose column `key` has this value, and whose `number` is greater than `after` and
  /// not greater than `up_to`. With it, and with `by_index`, the server searches the index on both columns, even if its
  /// statistics of the table are old.
  virtual std::string in_range(std::string_view key, std::string_view value, std::string_view number,
                               std::string_view after, std::string_view up_to) const {
    std::string condition = std::string(key).append(" = ").append(value);
    for (const auto& [sign, limit] : {std::pair(" > ", after), std::pair(" <= ", up_to)}) {
      condition.append(" AND ").append(number).append(sign).append(limit);
    }
    return condition;
  }

  /// Returns the column with which a statement finds a row again that it has found. `key` is the primary key.
  virtual std::string row_address(std::string_view key) const { return std::string(key); }

  /// Returns a SELECT of the transactions that may have inserted rows into the table, and have not ended. It has at
  /// least one row. Each row has the number of the running server, the name of one transaction or NULL, and whether the
  /// transaction is prepared, 1 or 0: then it may have had another name before. A row that is not visible after this
  /// SELECT, and that has a smaller number than a row that was visible before it, can only be added by these
  /// transactions. Empty if the database cannot tell.
  virtual std::string open_writers(std::string_view /*table*/) const { return {}; }

  /// The number of the running server in `open_writers`. It is another one after another server has taken over, and
  /// after the table was made again or its numbers were started over.
  virtual std::string server_number(std::string_view /*table*/) const { return "0"; }

  /// The end of an INSERT that changes nothing if a row has the same `key`, which are the columns of a unique index. A
  /// conflict on another unique index is an error. Where this end is empty, the INSERT fails with a duplicate key.
  virtual std::string unless_exists(std::string_view key) const {
    return std::string(" ON CONFLICT (").append(key).append(") DO NOTHING");
  }

  /// The end of an INSERT that updates the row with the same `key`: `columns` get the values of the INSERT.
  virtual std::string update_existing(std::string_view key, std::span<const std::string_view> columns) const {
    std::string end = std::string(" ON CONFLICT (").append(key).append(") DO UPDATE SET ");
    for (const std::string_view column : columns) {
      end.append(column == columns.front() ? "" : ", ").append(column).append(" = excluded.").append(column);
    }
    return end;
  }

  /// As `update_existing`. The column `number`, which the database numbers, also gets a new number.
  virtual std::string replace_existing(std::string_view key, std::string_view number,
                                       std::span<const std::string_view> columns) const {
    return update_existing(key, columns).append(", ").append(number).append(" = ").append(new_number(number));
  }

  /// The new number in `replace_existing`.
  virtual std::string new_number(std::string_view column) const { return "excluded." + std::string(column); }

  /// `Session::change_kept` returns a number that an INSERT or UPDATE assigns. In the statement, `marked` takes
  /// the place of the number, and `returning` is the end.
  virtual std::string marked(std::string_view number) const { return std::string(number); }
  virtual std::string returning(std::string_view number) const { return " RETURNING " + std::string(number); }

  /// Returns an expression for the greater of two numbers that are not NULL.
  virtual std::string greater(std::string_view a, std::string_view b) const = 0;

 protected:
  Dialect() = default;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
