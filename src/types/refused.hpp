#pragma once

#include <exception>
#include <optional>
#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The exception of `Delivery::refuse`. It is no `std::exception`, so that a handler's own catch clauses do not get it.
struct Refused {
  std::string result;
};

/// Returns the result that the handler gave with its refusal; none for another error.
inline std::optional<std::string> refused_by(const std::exception_ptr& error) {
  if (!error) return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const Refused& refused) {
    return refused.result;
  } catch (...) {
    return std::nullopt;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
