#include <txinbox/handler.hpp>

#include <string>

#include <txinbox/error.hpp>
#include <txinbox/native.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::shared_ptr<const backend::NativeConnection> HandlerConnection::connection_in(
    const ConnectionRef& connection) noexcept {
  return ConnectionAccess::of(connection);
}

HandlerConnection::operator soci::session&() const {
  if (soci::session* const session = connection_->soci()) return *session;
  throw Error(ErrorCode::invalid_argument,
              "the handler takes a soci::session&, and its consumer works on a connection of the client library; give "
              "the consumer a session, or let the handler take the connection, such as PGconn*");
}

HandlerConnection::operator NativeHandle() const {
  const std::string_view name = connection_->database().name();
  return {name, handle_for(name)};
}

void* HandlerConnection::handle_for(std::string_view database) const {
  const backend::Database& of_connection = connection_->database();
  if (of_connection.name() != database) {
    throw Error(ErrorCode::invalid_argument, "the handler takes a connection to " + std::string(database) +
                                                 ", and its consumer works on " + std::string(of_connection.name()));
  }
  return connection_->handle();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
