#pragma once

#include <memory>
#include <string>

#include "backend/dialect.hpp"
#include "backend/user_sql.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_mysql_dialect(std::string schema);

/// How to read and run the SQL of the command's user.
const UserSql& mysql_user_sql() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
