#pragma once

#include <memory>
#include <string>

#include "backend/dialect.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {

std::unique_ptr<Dialect> make_mysql_dialect(std::string schema);

}  // namespace txinbox::inline TXINBOX_ABI::backend
