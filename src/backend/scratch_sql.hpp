#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What a database spells in its own way about tables that a tool creates for a while. Otherwise the tool's SQL is
/// portable.
struct ScratchSql {
  std::string_view key_type = "text";   ///< The type of a column for a business key: it compares bytes.
  std::string_view table_options = {};  ///< Behind the columns of CREATE TABLE.
  std::string_view insert = "insert";   ///< With `unless_exists`, an INSERT that skips a row whose key exists.
  std::string_view unless_exists = " on conflict do nothing";
  std::string_view as_text = "cast({} as text)";  ///< Bytes in a column as text; {} is the column.

  bool has_one_writer = false;          ///< One transaction at a time writes, and keeps out all others.
  bool error_ends_transaction = false;  ///< After an error, the transaction can only be rolled back.

  /// Counts the transactions that are open on the sessions of a name, the parameter :n. Empty if no view shows them.
  std::string_view count_open = {};
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
