#pragma once

#include <cstddef>

#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// The size in bytes of a statement with its values as literals.
std::size_t size_with_values(const Statement& statement, const Values& values, const SqlLimits& limits);

/// An upper limit of this size. It does not look at the characters of the values.
std::size_t most_size_with_values(const Statement& statement, const Values& values);

/// If a statement is longer than the server's limit, the server closes the connection. This looks like a lost
/// connection, so the line would be retried forever, and no later line would be consumed.
///
/// Errors: `LineError` for the first statement that is longer.
void check_size(const Script& script, const Values& values, const SqlLimits& limits);

}  // namespace txinbox::cli
