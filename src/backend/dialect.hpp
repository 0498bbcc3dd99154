#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The SQL that each database spells in its own way, for statements that are otherwise the same on all:
/// those that are not on the path of every message. Values stand in the text as literals that mean the
/// same bytes whatever the session's settings are.
class Dialect {
 public:
  virtual ~Dialect() = default;
  Dialect(const Dialect&) = delete;
  Dialect& operator=(const Dialect&) = delete;

  /// A table of the inbox, quoted, in the schema where the tables are.
  virtual std::string table(std::string_view name) const = 0;

  /// A literal for a column of text, of bytes, of an attempt token.
  virtual std::string text(std::string_view) const = 0;
  virtual std::string bytes(std::string_view) const = 0;
  virtual std::string token(const detail::Token&) const = 0;

  std::string text_or_null(std::string_view value) const { return value.empty() ? "NULL" : text(value); }
  std::string bytes_or_null(std::string_view value) const { return value.empty() ? "NULL" : bytes(value); }

  /// The condition for the rows of one key.
  std::string is_key(std::string_view consumer, std::string_view business_key) const {
    return "consumer = " + text(consumer) + " AND business_key = " + text(business_key);
  }

  /// The time, in UTC, when it is evaluated: in an UPDATE that had to wait, after the wait.
  virtual std::string now() const = 0;

  /// The same and `later`, which may be negative.
  virtual std::string now_plus(std::chrono::milliseconds later) const = 0;

  /// The same in microseconds since 1970.
  virtual std::string now_in_microseconds() const = 0;

  /// The time that the statement began, less `age`. Unlike `now` it is fit for a search by an index.
  virtual std::string before(std::chrono::milliseconds age) const = 0;

  /// How many milliseconds the time in `column` is past; negative when it is to come.
  virtual std::string milliseconds_since(std::string_view column) const = 0;

  /// The time in `column` as UTC text, "YYYY-MM-DD HH:MM:SS.ffffff".
  virtual std::string utc_text(std::string_view column) const = 0;

  /// The bytes in `column` as hexadecimal digits.
  virtual std::string hex_text(std::string_view column) const = 0;

  /// The attempt token in `column` as hexadecimal digits.
  virtual std::string hex_token(std::string_view column) const { return hex_text(column); }

  /// What follows an INSERT that changes nothing where a row of the key exists; without it, it fails there as a
  /// duplicate key.
  virtual std::string_view unless_exists() const { return " ON CONFLICT DO NOTHING"; }

  /// A number that an INSERT or UPDATE assigns, and which `Session::change_returning` shall return: `marked` stands
  /// where it is assigned, `returning` at the end of the statement.
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
