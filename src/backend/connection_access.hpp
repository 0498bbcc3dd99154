#pragma once

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The connection that a `ConnectionRef` refers to.
struct ConnectionAccess {
  static const backend::ConnectionPtr& of(const ConnectionRef& connection) noexcept { return connection.connection_; }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
