#pragma once

#include <exception>
#include <stdexcept>

namespace txinbox::test {

/// An error of a handler. It is transient for a consumer whose option `is_transient` is `is_away`.
struct Away : std::runtime_error {
  Away() : std::runtime_error("away") {}
};

inline bool is_away(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Away&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace txinbox::test
