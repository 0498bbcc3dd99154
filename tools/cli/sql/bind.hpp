#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/sql/json_line.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// A value as SOCI is given it; none of the types loses anything of what the line said.
using BoundValue = std::variant<std::monostate, long long, unsigned long long, double, std::string>;

/// The value that suits the database: docs/operations/command.md has the table.
///
/// Errors: `LineError` for a string with a NUL character where it would be cut.
BoundValue to_bound(const JsonValue& value, const Dialect& dialect);

/// The values of one line, in the order of the script's names.
using Values = std::vector<BoundValue>;

/// Where each placeholder's value is found in a line.
class Binder {
 public:
  /// `options`: what `--bind` was given, NAME=POINTER each.
  ///
  /// Errors: `UsageError` for an option that is no such pair, that names a placeholder which the
  ///         script does not use, or one twice; as `JsonPointer`.
  Binder(const Script& script, const std::vector<std::string>& options);

  /// Errors: `LineError` for a member that the line does not have, and as `to_bound`.
  Values bind(const JsonValue& root, std::string_view line, const Dialect& dialect) const;

 private:
  struct Source {
    std::string name;
    std::optional<JsonPointer> pointer;  // none: the top-level member of that name
  };
  std::vector<Source> sources_;
};

}  // namespace txinbox::cli
