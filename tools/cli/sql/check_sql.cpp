#include "cli/sql/check_sql.hpp"

#include <fmt/format.h>

#include "cli/sql/sql_script.hpp"
#include "cli/sql/user_sql.hpp"
#include "console/describe_error.hpp"
#include "console/output.hpp"
#include "console/usage_error.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::cli {

void check_sql(soci::session& session, const Script& script) {
  const backend::ConnectionPtr connection = backend::connection_of(session);
  const UserSql& database = user_sql_of(connection->database());
  for (std::size_t i = 0; i < script.statements.size(); ++i) {
    const Statement& statement = script.statements[i];
    try {
      database.check(*connection, statement.sql);
    } catch (const DatabaseError& error) {
      const auto verdict = database.classify_check_error(error, statement.sql);
      if (verdict == SqlVerdict::unknown) continue;
      const auto text = fmt::format("SQL statement {}: {}", i + 1, describe_setup_error(std::current_exception()));
      if (verdict == SqlVerdict::wrong) throw UsageError(text);
      message("txinbox: warning: " + text);
    }
    if (!is_row_statement(statement.text)) return;
  }
}

}  // namespace txinbox::cli
