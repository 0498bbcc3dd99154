#pragma once

#include <cstddef>

#include "cli/sql/sql_script.hpp"

namespace soci {
class session;
}

namespace txinbox::cli {

/// How this session reads SQL, as its settings say.
Dialect session_dialect(soci::session& session, Database database);

/// The longest statement that the server takes, in bytes: MySQL's max_allowed_packet; 0: no such limit.
std::size_t longest_statement(soci::session& session, Database database);

/// Has the database read each statement, without values and without running it, so that a misspelt
/// table is told once and not for every line. Statements behind one that may create what they name
/// are not read.
///
/// Errors: `UsageError` with the server's own text, which holds no value yet.
void check_sql(soci::session& session, const Script& script, const Dialect& dialect);

}  // namespace txinbox::cli
