#pragma once

#include <exception>
#include <stdexcept>

namespace txinbox::test {

/// A handler's error that the consumer's options declare transient by `is_away`.
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
