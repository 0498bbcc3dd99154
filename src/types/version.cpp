#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

#define TXINBOX_TEXT_OF(x) #x
#define TXINBOX_DOTTED(a, b, c) TXINBOX_TEXT_OF(a) "." TXINBOX_TEXT_OF(b) "." TXINBOX_TEXT_OF(c)

const char* version() noexcept {
  return TXINBOX_DOTTED(TXINBOX_VERSION_MAJOR, TXINBOX_VERSION_MINOR, TXINBOX_VERSION_PATCH);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
