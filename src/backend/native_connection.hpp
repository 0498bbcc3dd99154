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
/// A session reads the handle before each use, because the owner can close or replace the connection. An example is
/// `soci::session::reconnect`.
class NativeConnection {
 public:
  virtual ~NativeConnection() = default;
  NativeConnection(const NativeConnection&) = delete;
  NativeConnection& operator=(const NativeConnection&) = delete;

  const Database& database() const noexcept { return database_; }

  /// Returns null if the connection is closed. It does no I/O.
  virtual void* handle() const noexcept = 0;

  /// Returns another value after the owner has replaced the connection.
  virtual const void* identity() const noexcept { return handle(); }

  /// Returns the SOCI session that owns the connection. Null if there is none.
  virtual soci::session* soci() const noexcept { return nullptr; }

  /// Allows or forbids `soci::session::reconnect`. Only a pool's connection can forbid it.
  virtual void allow_reconnecting(bool) const noexcept {}

 protected:
  explicit NativeConnection(const Database& database) noexcept : database_(database) {}

 private:
  const Database& database_;
};

/// Objects that use the connection at the same time share it: for example a session and a catalog.
using ConnectionPtr = std::shared_ptr<const NativeConnection>;

/// A connection that the caller has opened with the client library. The caller also closes it.
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
