#pragma once

/// @file
/// How functions accept a connection: a SOCI session, or the connection of a client library.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_API_BEGIN

class Connection;
class NativeHandle;

/// A time that a database has noted, in UTC.
using DatabaseTime = std::chrono::sys_time<std::chrono::microseconds>;

/// @cond
namespace backend {
class NativeConnection;
}

namespace detail {

/// The database whose client library has connections of type `Connection`. Empty if there is none. native.hpp has the
/// list of these types.
template <class Connection>
inline constexpr std::string_view native_database = {};

template <class Connection>
concept NativeConnectionType = !native_database<Connection>.empty();

std::shared_ptr<const backend::NativeConnection> soci_connection(soci::session& session);
std::shared_ptr<const backend::NativeConnection> native_connection(std::string_view database, void* handle);

struct ConnectionAccess;

}  // namespace detail
/// @endcond

/// The connection that a function or a consumer works on. It converts from what the service has:
/// - a `soci::session`, or a `Connection` of a `Pool`;
/// - with `#include <txinbox/native.hpp>`, a `PGconn*`, a `MYSQL*`, a `sqlite3*` or a `NativeHandle`.
///
/// It does not own the connection. The connection must outlive it, and the consumers and transactions that are made
/// with it.
///
/// @errors of all constructors:
/// - `Error` invalid_argument for a null pointer, or a connection that was not opened.
/// - `Error` unsupported_database if its database is not linked, or if the session is not connected.
class ConnectionRef {
 public:
  // NOLINTBEGIN(google-explicit-constructor, bugprone-forwarding-reference-overload): what it is made from converts
  /// A connection of a pool.
  ConnectionRef(const Connection& connection);

  /// A SOCI session, or an object that converts to one.
  template <class Session>
  requires(std::convertible_to<Session, soci::session&> && !std::same_as<std::remove_cvref_t<Session>, Connection>)
      ConnectionRef(Session&& session)
      : connection_(detail::soci_connection(std::forward<Session>(session))) {}

  /// A connection of a client library.
  template <detail::NativeConnectionType Connection>
  ConnectionRef(Connection* handle)
      : connection_(detail::native_connection(detail::native_database<Connection>, handle)) {}

  /// A connection of any of the client libraries.
  ConnectionRef(const NativeHandle& handle);

  /// A null pointer is not accepted.
  ConnectionRef(std::nullptr_t) = delete;
  // NOLINTEND(google-explicit-constructor, bugprone-forwarding-reference-overload)

 private:
  friend struct detail::ConnectionAccess;

  explicit ConnectionRef(std::shared_ptr<const backend::NativeConnection> connection) noexcept
      : connection_(std::move(connection)) {}

  std::shared_ptr<const backend::NativeConnection> connection_;
};

TXINBOX_API_END
}  // namespace txinbox
