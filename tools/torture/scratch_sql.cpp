#include "torture/scratch_sql.hpp"

#include <stdexcept>
#include <string>

#include <soci/soci.h>

#include "soci_adapter/soci_connection.hpp"

namespace txinbox::torture {

ScratchSql scratch_sql_of(const backend::Database& database) {
  if (database.name() == "sqlite3") return {.has_one_writer = true};
  if (database.name() == "mysql") {
    return {.key_type = "varbinary(255)",
            .table_options = " engine = InnoDB",
            .insert = "insert ignore",
            .unless_exists = "",
            .as_text = "cast({} as char)"};
  }
  if (database.name() == "postgresql") {
    return {
        .key_type = "text collate \"C\"",
        .as_text = "convert_from({}, 'UTF8')",
        .error_ends_transaction = true,
        .count_open = "select count(*) from pg_stat_activity where application_name = :n and xact_start is not null"};
  }
  throw std::logic_error("txinbox-torture has no syntax for " + std::string(database.name()));
}

std::vector<std::string> shards_of(soci::session& sql) {
  const auto connection = backend::connection_of(sql);
  return connection->database().catalog(connection)->shards();
}

void reach_all_shards(soci::session& sql) {
  if (!shards_of(sql).empty()) sql << "set transaction_mode = 'MULTI'";
}

}  // namespace txinbox::torture
