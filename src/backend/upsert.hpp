#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

/// Runs an INSERT in a transaction of its own. Its text must end with `Dialect::unless_exists` and
/// `Dialect::returning`. Returns the number of the new row. Returns none if its key has a row.
std::optional<std::int64_t> try_insert_kept(Session&, const KeptStatement&, std::span<const Parameter>);

/// Updates the row. If there is no row, inserts it. Other sessions may do the same at the same time. An INSERT … SELECT
/// that selects no row inserts nothing.
void change_or_insert(Session&, const std::string& update, const std::string& insert, UniqueKey key = message_key);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
