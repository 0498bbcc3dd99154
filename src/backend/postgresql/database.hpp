#pragma once

#include "backend/database.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

const Database& postgresql_database() noexcept;

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
