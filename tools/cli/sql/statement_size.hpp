#pragma once

#include <cstddef>

#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// The bytes of a statement that has its values in it: with quotes around them.
std::size_t size_with_values(const Statement& statement, const Values& values, const backend::SqlLimits& limits);

/// At most so many bytes; without a look at the characters of the values.
std::size_t most_size_with_values(const Statement& statement, const Values& values);

/// A server closes the connection at a statement beyond its limit, which cannot be told from one that was
/// lost: such a line would be tried again and again, and nothing behind it consumed.
///
/// Errors: `LineError` for the first statement that is longer.
void check_size(const Script& script, const Values& values, const backend::SqlLimits& limits);

}  // namespace txinbox::cli
