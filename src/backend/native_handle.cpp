#include <txinbox/native.hpp>

#include <string>

#include <txinbox/error.hpp>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

void* NativeHandle::of(std::string_view database) const {
  if (database_ == database) return connection_;
  throw Error(ErrorCode::invalid_argument, "the connection is one to " + std::string(database_) + ", not to " +
                                               std::string(database) + "; ask NativeHandle::database first");
}

NativeHandle native_handle(soci::session& session) {
  const backend::Database& database = backend::database_of(session);
  return {database.name(), database.native_connection(session)->handle()};
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
