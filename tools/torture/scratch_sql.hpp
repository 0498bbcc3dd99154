#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/database.hpp"

namespace soci {
class session;
}

namespace txinbox::torture {

/// The syntax that differs between databases, for tables that a tool creates for a short time. The rest of the tool's
/// SQL is portable.
struct ScratchSql {
  std::string_view key_type = "text";   ///< The type of a column for a business key. Columns of this type compare
                                        ///< bytes.
  std::string_view table_options = {};  ///< The end of CREATE TABLE, after the columns.
  std::string_view insert = "insert";   ///< This word and `unless_exists` make an INSERT that skips a row whose key
                                        ///< exists.
  std::string_view unless_exists = " on conflict do nothing";
  std::string_view as_text = "cast({} as text)";  ///< Converts bytes in a column to text. {} is the column.

  bool has_one_writer = false;          ///< Only one transaction at a time can write. The others wait.
  bool error_ends_transaction = false;  ///< After an error, the transaction can only be rolled back.

  /// A query that counts the open transactions of the sessions with one name. The name is the parameter :n. Empty if
  /// the database has no view that shows them.
  std::string_view count_open = {};
};

/// Returns the syntax of this database.
ScratchSql scratch_sql_of(const backend::Database&);

/// The names of the databases for each shard. Empty if the connection reaches one database.
std::vector<std::string> shards_of(soci::session& sql);

/// Lets one transaction change rows of all shards, if there are several. A consumer must never do this.
void reach_all_shards(soci::session& sql);

}  // namespace txinbox::torture
