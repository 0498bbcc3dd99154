#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>

#include "backend/database.hpp"
#include "base/private_api.hpp"
#include "base/process.hpp"
#include "pool/connection_locals.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace detail {

/// Opens the connections of a pool.
class Connector {
 public:
  virtual ~Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  virtual backend::ConnectionPtr connect() const = 0;

  /// Explains why a connection could not be opened or set up, if waiting does not help. Returns none for any other
  /// error.
  virtual std::optional<std::string> refusal(const std::string& code) const = 0;

 protected:
  Connector() = default;
};

/// Errors: `Error` invalid_argument.
void check(const PoolOptions& options);

/// One connection with everything that is cached for it. A reconnect makes a new slot, so nothing cached outlives its
/// connection.
struct Slot {
  backend::ConnectionPtr connection;
  std::unique_ptr<backend::Session> backend;  ///< Destroyed before the connection, because its statements use the
                                              ///< connection.
  ConnectionLocals locals;                    ///< The objects of the handlers. Also destroyed before the connection.
  bool verified = false;                      ///< The tables and the settings were checked.
  bool may_claim = false;                     ///< `verify_claims` has passed.
  bool clean = true;                          ///< Nothing was done on the connection that `reset()` must undo.
  bool usable = true;                         ///< False: the pool must close it.

  Slot() = default;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot();
};

/// The connections of a pool. The pool, its lent connections and its consumers share it.
///
/// In a child of fork(), the connections belong to the parent. The child neither uses nor closes them: a close sends a
/// message over the parent's socket, and the server would end the parent's session. The child leaks its copies.
class PoolState {
 public:
  /// Opens the first connection. The options must have been checked.
  static std::shared_ptr<PoolState> open(std::unique_ptr<Connector> connector, PoolOptions options);
  ~PoolState();

  const PoolOptions& options() const noexcept { return options_; }

  /// Returns how many connections were found dead or had to be closed.
  ///
  /// It first checks one idle connection, without I/O. So it notices a lost server even if nobody uses a connection.
  ///
  /// Errors: `Error` forked.
  std::uint64_t lost_connections();

  /// As `Pool::acquire`.
  std::unique_ptr<Slot> acquire(const std::stop_token& stop);

  /// Returns the connection that was used last, if it is idle, intact and verified; otherwise null.
  ///
  /// It neither connects nor waits. In a child of fork() it returns null.
  std::unique_ptr<Slot> take_idle();

  /// Resets the connection if needed. Closes it if that fails.
  void give_back(std::unique_ptr<Slot>) noexcept;

 private:
  PoolState(std::unique_ptr<Connector> connector, PoolOptions options);

  std::unique_ptr<Slot> connect() const;
  void forget_one() noexcept;
  void refuse_forked() const;

  const OwnProcess owner_;
  const PoolOptions options_;
  const std::unique_ptr<Connector> connector_;

  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<std::unique_ptr<Slot>> idle_;  ///< The connection that was used last is lent first.
  std::size_t open_ = 0;
  std::uint64_t lost_ = 0;
};

/// Gives the library's own classes access to `Pool` and `Connection`.
struct PoolAccess {
  static const std::shared_ptr<PoolState>& state(const Pool& pool) noexcept { return pool.state_; }
  static Pool make(std::shared_ptr<PoolState> state) noexcept { return Pool(std::move(state)); }
  static Connection lend(std::shared_ptr<PoolState> state, std::unique_ptr<Slot> slot) noexcept {
    return {std::move(state), std::move(slot)};
  }
};

}  // namespace detail
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
