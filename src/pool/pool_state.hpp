#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include <txinbox/pool.hpp>

#include "backend/database.hpp"
#include "base/own_process.hpp"
#include "pool/connection_locals.hpp"
#include "pool/pool_session_factory.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One connection with everything that is cached for it. A reconnect is a new slot, so nothing cached
/// can outlive the connection that it belongs to.
struct Slot {
  explicit Slot(const backend::Database&);

  PoolSessionFactory factory;
  std::unique_ptr<soci::session> session;
  std::unique_ptr<backend::Session> backend;  ///< Ends before the session, on which it has statements.
  ConnectionLocals locals;                    ///< The handlers'; end before the session as well.
  bool verified = false;                      ///< The tables and the settings were checked.
  bool clean = true;                          ///< Nothing was done on it that `reset()` must undo.
  bool usable = true;                         ///< Not told to be closed.

  ~Slot();
};

/// The connections of a pool. The pool, its lent connections and its consumers share it.
///
/// In a child of fork() the connections are the parent's: they are neither used nor closed there, since the
/// farewell of a close goes over the parent's socket and ends its session. What the child has of them is leaked.
class PoolState {
 public:
  static std::shared_ptr<PoolState> open(const std::string& url, PoolOptions options);
  ~PoolState();

  const PoolOptions& options() const noexcept { return options_; }

  /// How many connections were found dead or had to be closed. Looks at an idle one first, without
  /// I/O, so that a server's end is seen although nobody uses its connections.
  ///
  /// Errors: `Error` forked.
  std::uint64_t lost_connections();

  /// As `Pool::acquire`.
  std::unique_ptr<Slot> acquire(const std::stop_token& stop);

  /// The connection that was used last, if it is idle, whole and has been verified; null otherwise. Neither
  /// connects nor waits. Null in a child of fork() as well.
  std::unique_ptr<Slot> take_idle();

  /// Cleans the connection where that is needed, and closes it where it cannot be cleaned.
  void give_back(std::unique_ptr<Slot>) noexcept;

 private:
  PoolState(const std::string& url, PoolOptions options);

  std::unique_ptr<Slot> connect() const;
  void forget_one() noexcept;
  void refuse_forked() const;

  const OwnProcess owner_;
  const PoolOptions options_;
  const backend::Database* database_;
  std::string connection_string_;  ///< May hold a password: never part of a text.
  UrlParameters url_parameters_;   ///< The same.

  std::mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<std::unique_ptr<Slot>> idle_;  ///< The last one used is taken first: it is warm.
  std::size_t open_ = 0;
  std::uint64_t lost_ = 0;
};

/// Lets the library's own classes into `Pool` and `Connection`.
struct PoolAccess {
  static const std::shared_ptr<PoolState>& state(const Pool& pool) noexcept { return pool.state_; }
  static Pool make(std::shared_ptr<PoolState> state) noexcept { return Pool(std::move(state)); }
  static Connection lend(std::shared_ptr<PoolState> state, std::unique_ptr<Slot> slot) noexcept {
    return {std::move(state), std::move(slot)};
  }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
