#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The columns of the unique index on which an INSERT may meet an existing row. A conflict on another unique index is
/// an error.
struct UniqueKey {
  std::string_view columns;
};

/// The primary key of the tables with a row for each message.
inline constexpr UniqueKey message_key{"consumer, business_key"};

/// Runs an INSERT. Returns false if its key has a row.
bool try_insert(Session&, const std::string& insert, UniqueKey key = message_key,
                TransactionUse use = TransactionUse::own);

/// Does what `try_insert` does, for a statement with a number that `Dialect::marked` encloses. Returns the number
/// `returned` of the new row.
std::optional<std::int64_t> try_insert_returning(Session&, const std::string& insert, std::string_view returned);

/// Updates the row. If there is no row, inserts it. Other sessions may do the same at the same time. An INSERT … SELECT
/// that selects no row inserts nothing.
void change_or_insert(Session&, const std::string& update, const std::string& insert, UniqueKey key = message_key);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
