#pragma once

#include <memory>

#include "backend/dialect.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

std::unique_ptr<Dialect> make_sqlite3_dialect();

}  // namespace txinbox::inline TXINBOX_ABI::backend
