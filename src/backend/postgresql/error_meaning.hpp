#pragma once

#include <string_view>

#include <txinbox/version.hpp>

#include "backend/error_meaning.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What a code means. A code that is not listed is `ErrorClass::other`, without a text.
ErrorMeaning postgresql_meaning(std::string_view sqlstate);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
