#pragma once

#include <memory>
#include <string>

#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The syntax of portable statements.
std::unique_ptr<Dialect> make_postgresql_dialect(std::string schema);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
