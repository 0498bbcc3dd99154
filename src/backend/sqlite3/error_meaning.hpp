#pragma once

#include <txinbox/version.hpp>

#include "backend/error_meaning.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What a code means. A code that is not listed is `ErrorClass::other`, without a text.
ErrorMeaning sqlite3_meaning(int code);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
