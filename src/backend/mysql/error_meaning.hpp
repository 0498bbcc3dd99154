#pragma once

#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// What a code means, in a few words: the codes that a user's SQL meets most. Empty for others.
std::string_view mysql_meaning(unsigned code);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
