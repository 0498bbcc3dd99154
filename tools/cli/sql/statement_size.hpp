#pragma once

#include <cstddef>

#include "cli/sql/bind.hpp"
#include "cli/sql/sql_script.hpp"

namespace txinbox::cli {

/// What a statement with its values has in bytes, as SOCI sends it to MySQL: with quotes around the values.
std::size_t size_for_mysql(const Statement& statement, const Values& values, const Dialect& dialect);

/// MySQL closes the connection at a statement beyond its max_allowed_packet, which cannot be told from one
/// that was lost: such a line would be tried again and again, and nothing behind it consumed.
///
/// `longest`: in bytes; 0: no limit.
///
/// Errors: `LineError` for the first statement that is longer.
void check_size(const Script& script, const Values& values, const Dialect& dialect, std::size_t longest);

}  // namespace txinbox::cli
