#include "support/effects.hpp"

namespace txinbox::test {

std::string EffectDatabase::settings_of(soci::session& sql) const {
  std::string query;
  if (on_sqlite3()) {
    query = "select (select foreign_keys from pragma_foreign_keys) || ' ' || (select timeout from pragma_busy_timeout)";
  } else if (on_mysql()) {
    query =
        "select concat_ws(' ', @@autocommit, @@sql_mode, @@character_set_client, @@collation_connection, @@session." +
        std::string(on_mariadb() ? "tx_isolation" : "transaction_isolation") +
        ", @@innodb_lock_wait_timeout, @@time_zone, database(), current_role())";
  } else {
    query =
        "select concat_ws(' ', current_setting('search_path'), current_setting('role'), "
        "current_setting('client_encoding'), current_setting('default_transaction_isolation'), "
        "current_setting('lock_timeout'), current_setting('statement_timeout'), current_setting('TimeZone'))";
  }
  std::string settings;
  sql << query, soci::into(settings);
  return settings;
}

}  // namespace txinbox::test
