#pragma once

#include <exception>

#include <soci/error.h>
#include <txinbox/version.hpp>

#include "backend/backend.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// What the error means, if it is one of the database; `other` if not.
inline backend::ErrorClass class_of(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error& e) {
    return backend::classify(e);
  } catch (...) {
    return backend::ErrorClass::other;
  }
}

/// Whether it is an error of the database, whatever it means.
inline bool is_of_database(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
