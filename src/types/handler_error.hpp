#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// An exception of a handler that txinbox does not know, with the code of the error that the handler's connection had.
/// It never leaves the library: the caller gets `original_error`.
struct HandlerError {
  std::exception_ptr original;
  std::string_view database;
  std::string code;
};

/// The exception that the handler threw, if `error` is a `HandlerError`. Otherwise `error`.
std::exception_ptr original_error(const std::exception_ptr& error) noexcept;

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
