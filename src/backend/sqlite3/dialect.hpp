#pragma once

#include <memory>

#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_sqlite3_dialect();

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
