#pragma once

#include "cli/sql/sql_script.hpp"

namespace soci {
class session;
}

namespace txinbox::cli {

/// Lets the database parse each statement, without values and without running it. So a wrong table name gives one
/// error, and not one for each line. If a statement may create a table or a column, the statements after it are not
/// parsed.
///
/// Errors: `UsageError` with the server's own text, which cannot contain values of a message yet.
void check_sql(soci::session& session, const Script& script);

}  // namespace txinbox::cli
