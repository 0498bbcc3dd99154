#include "cli/sql/user_sql.hpp"

#include <stdexcept>

#include "backend/database.hpp"

namespace txinbox::cli {

const UserSql& user_sql_of(const backend::Database& database) {
#ifdef TXINBOX_CLI_SQLITE3
  if (database.name() == "sqlite3") return sqlite3_user_sql();
#endif
#ifdef TXINBOX_CLI_MYSQL
  if (database.name() == "mysql") return mysql_user_sql();
#endif
#ifdef TXINBOX_CLI_POSTGRESQL
  if (database.name() == "postgresql") return postgresql_user_sql();
#endif
  throw std::logic_error("the command has no syntax for " + std::string(database.name()));
}

}  // namespace txinbox::cli
