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

/// A session that is ready to consume on: checked, and with the tables found.
class SessionHandle {
 public:
  SessionHandle(soci::session& sql, backend::Session& backend);
  SessionHandle(std::shared_ptr<PoolState> pool, std::unique_ptr<Slot> slot) noexcept;
  SessionHandle(SessionHandle&&) noexcept;
  SessionHandle& operator=(SessionHandle&&) = delete;
  ~SessionHandle();  ///< Gives a pool's session back; ends what handlers kept with a caller's.

  soci::session& sql() const noexcept { return *sql_; }
  backend::Session& backend() const noexcept { return *backend_; }

  /// What handlers keep with the connection.
  ConnectionLocals& locals() noexcept;

  /// Ends what handlers kept: after an error it is of no more use.
  void drop_locals() noexcept;

  /// Says that what was done on it has been undone or committed, so that the pool need not clean it.
  void mark_clean() noexcept;

  /// Says that it is of no more use: the pool closes it instead of cleaning it.
  void discard() noexcept;

 private:
  friend class SessionProvider;
  void verify_once();

  soci::session* sql_;
  backend::Session* backend_;
  std::shared_ptr<PoolState> pool_;
  std::unique_ptr<Slot> slot_;
  ConnectionLocals locals_;  ///< Of a caller's session.
};

/// Where a consumer's sessions come from: a pool, or the one session of the caller's.
class SessionProvider {
 public:
  explicit SessionProvider(std::shared_ptr<PoolState> pool);
  explicit SessionProvider(soci::session& sql);
  SessionProvider(SessionProvider&&) noexcept;
  ~SessionProvider();

  /// Errors: those of `Pool::acquire`; of `verify`, at the first use of a session; `transaction_open`
  ///         on a caller's session.
  SessionHandle borrow(const std::stop_token& stop);

  /// A session that was used before and is free now, without connecting or waiting for one: none where
  /// there is none. For what can as well be done later.
  std::optional<SessionHandle> borrow_idle();

  /// Null for a caller's session.
  const std::shared_ptr<PoolState>& pool() const noexcept { return pool_; }

  /// Whether a lost session is replaced by the next `borrow`.
  bool reconnects() const noexcept { return pool_ != nullptr; }

  /// As `PoolState::lost_connections`; 0 for a caller's session.
  std::uint64_t lost_connections();

  /// What tells this source from others, for the check against nesting.
  const void* identity() const noexcept;

 private:
  std::shared_ptr<PoolState> pool_;
  soci::session* sql_ = nullptr;
  std::unique_ptr<backend::Session> session_;
  bool verified_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
