#include "backend/has_code.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

bool has_code(const std::exception_ptr& error, ErrorCode code) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == code;
  } catch (...) {
    return false;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
