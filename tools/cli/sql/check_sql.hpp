#pragma once

#include "cli/sql/sql_script.hpp"

namespace soci {
class session;
}

namespace txinbox::cli {

/// Has the database read each statement, without values and without running it, so that a misspelt
/// table is told once and not for every line. Statements behind one that may create what they name
/// are not read.
///
/// Errors: `UsageError` with the server's own text, which holds no value yet.
void check_sql(soci::session& session, const Script& script);

}  // namespace txinbox::cli
