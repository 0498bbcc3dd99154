#pragma once

#include "backend/user_sql.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

const UserSql& mysql_user_sql() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
