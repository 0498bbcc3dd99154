#pragma once

#include <memory>

#include <txinbox/version.hpp>

namespace soci {
class session;
}

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

class Database;

/// The connection of a client library that a session works on: a MYSQL*, a PGconn* or a sqlite3*.
///
/// A session asks for it before each use, because its owner can close or replace it: `soci::session::reconnect` does.
class NativeConnection {
 public:
  virtual ~NativeConnection() = default;
  NativeConnection(const NativeConnection&) = delete;
  NativeConnection& operator=(const NativeConnection&) = delete;

  const Database& database() const noexcept { return database_; }

  /// Null when it is closed. No I/O.
  virtual void* handle() const noexcept = 0;

  /// Another value once the owner has replaced the connection.
  virtual const void* identity() const noexcept { return handle(); }

  /// The SOCI session that owns the connection; null if there is none.
  virtual soci::session* soci() const noexcept { return nullptr; }

  /// Whether `soci::session::reconnect` works. Only a pool's connection can refuse it.
  virtual void allow_reconnecting(bool) const noexcept {}

 protected:
  explicit NativeConnection(const Database& database) noexcept : database_(database) {}

 private:
  const Database& database_;
};

/// Shared by what works on the connection at the same time, as a session and a catalog.
using ConnectionPtr = std::shared_ptr<const NativeConnection>;

/// A connection that the caller has opened with the client library, and closes.
class CallersConnection final : public NativeConnection {
 public:
  CallersConnection(const Database& database, void* handle) noexcept : NativeConnection(database), handle_(handle) {}

  void* handle() const noexcept override { return handle_; }

 private:
  void* handle_;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
