#pragma once

#include "backend/backend.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

const Database& mysql_database() noexcept;

}  // namespace txinbox::inline TXINBOX_ABI::backend
