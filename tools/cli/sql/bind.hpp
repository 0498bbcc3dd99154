#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/user_sql.hpp"
#include "cli/sql/json_line.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// What the SQL is given for a value of a line: docs/operations/command.md has the table.
///
/// Errors: `LineError` for a string with a NUL character where it cannot be sent.
backend::SqlValue to_sql(const JsonValue& value, const backend::SqlLimits& limits);

/// The values of one line, in the order of the script's names.
using Values = std::vector<backend::SqlValue>;

/// Where each placeholder's value is found in a line.
class Binder {
 public:
  /// `options`: what `--bind` was given, NAME=POINTER each.
  ///
  /// Errors: `UsageError` for an option that is no such pair, that names a placeholder which the
  ///         script does not use, or one twice; as `JsonPointer`.
  Binder(const Script& script, const std::vector<std::string>& options);

  /// Errors: `LineError` for a member that the line does not have, and as `to_sql`.
  Values bind(const JsonValue& root, std::string_view line, const backend::SqlLimits& limits) const;

 private:
  struct Source {
    std::string name;
    std::optional<JsonPointer> pointer;  // none: the top-level member of that name
  };
  std::vector<Source> sources_;
};

}  // namespace txinbox::cli
