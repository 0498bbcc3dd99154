#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>

#include "backend/error_class.hpp"
#include "backend/session.hpp"
#include "pool/connection_locals.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Pool;

namespace detail {

class PoolState;
struct Slot;

/// A session that is ready for consuming: it was checked, and its tables were found.
class SessionHandle {
 public:
  explicit SessionHandle(backend::Session& session);
  SessionHandle(std::shared_ptr<PoolState> pool, std::unique_ptr<Slot> slot) noexcept;
  SessionHandle(SessionHandle&&) noexcept;
  SessionHandle& operator=(SessionHandle&&) = delete;
  ~SessionHandle();  ///< Gives a pool's session back; destroys the handlers' objects of a caller's session.

  const backend::NativeConnection& connection() const noexcept { return *backend_->connection_ptr(); }
  backend::Session& backend() const noexcept { return *backend_; }

  /// The objects that handlers keep with the connection.
  ConnectionLocals& locals() noexcept;

  /// Destroys the objects that handlers kept, because they may be unusable after an error.
  void drop_locals() noexcept;

  /// Declares that all work on the session was committed or rolled back, so that the pool need not reset it.
  void mark_clean() noexcept;

  /// Declares that the session is unusable: the pool closes it instead of resetting it.
  void discard() noexcept;

 private:
  friend class SessionProvider;
  void verify_once(bool claims);

  backend::Session* backend_;  ///< Null after a move.
  std::shared_ptr<PoolState> pool_;
  std::unique_ptr<Slot> slot_;
  ConnectionLocals locals_;  ///< Used only for a caller's session.
};

/// When the settings of a caller's session are checked.
enum class SettingsCheck {
  now,
  at_begin,  ///< By the statement that begins the transaction, if the database can do this.
};

/// Gives a consumer its sessions: from a pool, or the one session of the caller.
class SessionProvider {
 public:
  explicit SessionProvider(std::shared_ptr<PoolState> pool);
  explicit SessionProvider(backend::ConnectionPtr connection);
  SessionProvider(SessionProvider&&) noexcept;
  ~SessionProvider();

  /// Borrows a session, and checks it.
  ///
  /// Errors: those of `Pool::acquire`; those of `verify`, at the first use of a session; on a caller's session,
  ///         `transaction_open` and `unsafe_connection` at every use, or with `at_begin` when the transaction begins.
  SessionHandle borrow(const std::stop_token& stop, SettingsCheck = SettingsCheck::now);

  /// Returns a verified session that is idle. Returns none if no session is idle. It neither connects nor waits.
  ///
  /// Use it for work that can be done later.
  std::optional<SessionHandle> borrow_idle();

  /// Throws if a caller's session finds another inbox than at its first use: for an answer that needs no transaction.
  ///
  /// Errors: `Error` unsafe_connection; a database error.
  void refuse_other_inbox() {
    if (verified_) session_->refuse_other_inbox();
  }

  /// Declares that the sessions are for claims. Then `borrow` calls `verify_claims` once for each connection.
  void use_for_claims() noexcept { claims_ = true; }

  /// Returns null for a caller's session.
  const std::shared_ptr<PoolState>& pool() const noexcept { return pool_; }

  /// Whether the next `borrow` replaces a lost session.
  bool reconnects() const noexcept { return pool_ != nullptr; }

  /// As `PoolState::lost_connections`; 0 for a caller's session.
  std::uint64_t lost_connections();

  /// Identifies this source, for the check against nested calls.
  const void* identity() const noexcept;

 private:
  std::shared_ptr<PoolState> pool_;
  std::unique_ptr<backend::Session> session_;
  bool verified_ = false;
  bool claims_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
