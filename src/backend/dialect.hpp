#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/kept_statement.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What each database spells in its own way, for statements that are otherwise the same on all databases. Statements
/// that every message needs are not written with it. Values stand in the text as literals, which mean the same bytes
/// whatever the session's settings are.
class Dialect {
 public:
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  /// The quoted name of a table of the inbox, with its schema.
  virtual std::string table(std::string_view name) const = 0;

  /// A literal for a column of text, of bytes, of an attempt token.
  virtual std::string text(std::string_view) const = 0;
  virtual std::string bytes(std::string_view) const = 0;
  virtual std::string token(const detail::Token&) const = 0;

  /// The place of a value in a `KeptStatement`. `position` counts from 1.
  virtual std::string parameter(ParameterType, int position) const = 0;

  std::string text_or_null(std::string_view value) const { return value.empty() ? "NULL" : text(value); }
  std::string bytes_or_null(std::string_view value) const { return value.empty() ? "NULL" : bytes(value); }

  /// The condition for the rows of one key.
  std::string is_key(std::string_view consumer, std::string_view business_key) const {
    return "consumer = " + text(consumer) + " AND business_key = " + text(business_key);
  }

  /// The time in UTC at which the expression is evaluated. In an UPDATE that waited for a lock, that is after the wait.
  virtual std::string now() const = 0;

  /// The same and `later`, which may be negative.
  virtual std::string now_plus(std::chrono::milliseconds later) const = 0;

  /// The same in microseconds since 1970.
  virtual std::string now_in_microseconds() const = 0;

  /// The time at which the statement began, minus `age`. Unlike `now`, a search by an index can use it.
  virtual std::string before(std::chrono::milliseconds age) const = 0;

  /// The milliseconds since the time in `column`; negative if that time is in the future.
  virtual std::string milliseconds_since(std::string_view column) const = 0;

  /// The time in `column` as UTC text, "YYYY-MM-DD HH:MM:SS.ffffff".
  virtual std::string utc_text(std::string_view column) const = 0;

  /// The bytes in `column` as hexadecimal digits.
  virtual std::string hex_text(std::string_view column) const = 0;

  /// The attempt token in `column` as hexadecimal digits.
  virtual std::string hex_token(std::string_view column) const { return hex_text(column); }

  /// Stands behind a table, and makes the server use this index of it, where the server might choose a worse one.
  virtual std::string by_index(std::string_view) const { return {}; }

  /// The end of an INSERT that changes nothing if a row of the key exists. Without it, the INSERT fails with a
  /// duplicate key.
  virtual std::string_view unless_exists() const { return " ON CONFLICT DO NOTHING"; }

  /// For a number that an INSERT or UPDATE assigns and that `Session::change_returning` returns: `marked` stands where
  /// the number is assigned, `returning` at the end of the statement.
  virtual std::string marked(std::string_view number) const { return std::string(number); }
  virtual std::string returning(std::string_view number) const { return " RETURNING " + std::string(number); }

  /// The greater of two numbers that are not NULL.
  virtual std::string greater(std::string_view a, std::string_view b) const = 0;

 protected:
  Dialect() = default;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
