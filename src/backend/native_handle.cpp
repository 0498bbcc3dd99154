#include <txinbox/native.hpp>

#include <memory>
#include <string>

#include <txinbox/connection_ref.hpp>
#include <txinbox/error.hpp>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

void* NativeHandle::of(std::string_view database) const {
  if (database_ == database) return connection_;
  throw Error(ErrorCode::invalid_argument, "the connection is one to " + std::string(database_) + ", not to " +
                                               std::string(database) + "; ask NativeHandle::database first");
}

ConnectionRef::ConnectionRef(const NativeHandle& handle)
    : connection_(detail::native_connection(handle.database_, handle.connection_)) {}

namespace detail {

backend::ConnectionPtr native_connection(std::string_view name, void* handle) {
  const backend::Database& database = backend::database_named(name);
  if (handle == nullptr) {
    throw Error(ErrorCode::invalid_argument, "the connection to " + std::string(name) + " is a null pointer");
  }
  database.refuse_unopened(handle);
  return std::make_shared<backend::CallersConnection>(database, handle);
}

}  // namespace detail

TXINBOX_NAMESPACE_END
}  // namespace txinbox
