#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sql/sql_script.hpp"
#include "cli/sql/user_sql.hpp"
#include "message/json/json_pointer.hpp"
#include "message/json/json_value.hpp"

namespace txinbox::cli {

using detail::JsonPointer;
using detail::JsonValue;

/// An error in one line of the input. Its text contains no values of the line.
using LineError = detail::JsonError;

/// The JSON Pointer in the value of an option.
///
/// Errors: `UsageError` that names the option.
JsonPointer pointer_of_option(std::string_view option, std::string_view text);

/// Parses a line as a JSON object.
///
/// Errors: `LineError` if it is not an object; as `parse_json`.
JsonValue parse_json_line(std::string_view line);

/// The SQL value for a JSON value of a line. docs/operations/command.md has the table.
///
/// Errors: `LineError` for a string with a NUL character, if the database does not support it.
SqlValue to_sql(const JsonValue& value, const SqlLimits& limits);

/// The values of one line, in the order of the script's names.
using Values = std::vector<SqlValue>;

/// Knows for each placeholder where a line has its value.
class Binder {
 public:
  /// `options`: the values of `--bind`, each NAME=POINTER.
  ///
  /// Errors: `UsageError` for an option that is not NAME=POINTER, that names an unknown placeholder, or that names a
  ///          placeholder a second time; as `pointer_of_option`.
  Binder(const Script& script, const std::vector<std::string>& options);

  /// Errors: `LineError` if the line does not have a value; as `to_sql`.
  Values bind(const JsonValue& root, std::string_view line, const SqlLimits& limits) const;

 private:
  struct Source {
    std::string name;
    std::optional<JsonPointer> pointer;  // nothing: the top-level member with that name
  };
  std::vector<Source> sources_;
};

}  // namespace txinbox::cli
