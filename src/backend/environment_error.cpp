#include "backend/environment_error.hpp"

#include <new>

#include <soci/error.h>

#include "backend/backend.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

bool is_environment_error(const std::exception_ptr& error) noexcept {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error& e) {
    return backend::classify(e) == backend::ErrorClass::environment;
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
