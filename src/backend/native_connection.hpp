#pragma once

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The connection of a client library that a session works on: a MYSQL*, a PGconn* or a sqlite3*.
///
/// A session asks for it before each use, because its owner can close or replace it: `soci::session::reconnect` does.
class NativeConnection {
 public:
  virtual ~NativeConnection() = default;
  NativeConnection(const NativeConnection&) = delete;
  NativeConnection& operator=(const NativeConnection&) = delete;

  /// Null when it is closed. No I/O.
  virtual void* handle() const noexcept = 0;

 protected:
  NativeConnection() = default;
};

/// The connection of a SOCI session. `native` finds it.
template <auto native>
class SociConnection final : public NativeConnection {
 public:
  explicit SociConnection(soci::session& sql) noexcept : sql_(sql) {}

  void* handle() const noexcept override { return native(sql_); }

 private:
  soci::session& sql_;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
