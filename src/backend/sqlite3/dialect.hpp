#pragma once

#include <memory>

#include "backend/dialect.hpp"
#include "backend/user_sql.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_sqlite3_dialect();

/// How to read and run the SQL of the command's user.
const UserSql& sqlite3_user_sql() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
