#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backend/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Runs an INSERT in a transaction of its own. False: a row of that key is there.
bool try_insert(Session&, const std::string& insert);

/// The same for a statement with a number that is `Dialect::marked`, and `returned` as the statement shall return it.
std::optional<std::int64_t> try_insert_returning(Session&, const std::string& insert, std::string_view returned);

/// Changes the row, or inserts it where there is none, whoever else does the same. An INSERT that finds nothing
/// to insert is given up.
void change_or_insert(Session&, const std::string& update, const std::string& insert);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
