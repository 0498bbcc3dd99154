#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::exception_ptr original_error(const std::exception_ptr& error) noexcept {
  if (!error) return error;
  try {
    std::rethrow_exception(error);
  } catch (const HandlerError& found) {
    return original_error(found.original);
  } catch (...) {
    return error;
  }
}

void set_count(const std::exception_ptr& error, FailureCount count) noexcept {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const HandlerError& found) {
    if (found.count != nullptr) *found.count = count;
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody asks
  }
}

bool is_proven_failure(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const HandlerError& found) {
    return found.is_proven;
  } catch (...) {
    return false;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
