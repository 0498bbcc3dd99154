#pragma once

#include <utility>

#include <txinbox/connection_ref.hpp>
#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The connection that a `ConnectionRef` refers to.
struct ConnectionAccess {
  static const backend::ConnectionPtr& of(const ConnectionRef& connection) noexcept { return connection.connection_; }
  static ConnectionRef make(backend::ConnectionPtr connection) noexcept { return ConnectionRef(std::move(connection)); }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
