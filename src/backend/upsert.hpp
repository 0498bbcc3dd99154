#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Runs an INSERT in a transaction of its own. Returns false if a row of that key exists.
bool try_insert(Session&, const std::string& insert);

/// As `try_insert`, for a statement in which a number is `Dialect::marked`. Returns the number `returned` of the new
/// row.
std::optional<std::int64_t> try_insert_returning(Session&, const std::string& insert, std::string_view returned);

/// Updates the row, or inserts it if there is none, even while others do the same. An INSERT … SELECT that finds no row
/// to insert does nothing.
void change_or_insert(Session&, const std::string& update, const std::string& insert);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
