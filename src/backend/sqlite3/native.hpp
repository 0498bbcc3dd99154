#pragma once

// Access to SQLite below SOCI. SOCI 4.0 declares SQLite's interface inside the namespace `sqlite_api`, and does not
// compile if <sqlite3.h> was included before. SOCI 4.1 does not include it at all.

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <soci/version.h>

#include <string>

#include <txinbox/version.hpp>

#if SOCI_VERSION >= 400100
#include <sqlite3.h>
#else
using namespace sqlite_api;  // NOLINT(google-build-using-namespace)
#endif

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The connection of a SOCI session, null when it is closed.
inline ::sqlite3* sqlite3_native(soci::session& sql) noexcept {
  auto* backend = static_cast<soci::sqlite3_session_backend*>(sql.get_backend());
  return backend == nullptr ? nullptr : reinterpret_cast<::sqlite3*>(backend->conn_);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
