#pragma once

// Access to SQLite. A file that includes this header must not include SOCI's header for SQLite: SOCI 4.0 declares
// SQLite's interface inside a namespace of its own.

#include <sqlite3.h>

#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// Returns null if the connection is closed.
inline ::sqlite3* sqlite3_native(const NativeConnection& connection) noexcept {
  return static_cast<::sqlite3*>(connection.handle());
}

inline constexpr std::string_view sqlite3_name = "sqlite3";

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
