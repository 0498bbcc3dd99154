#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/pool_options.hpp>
#include <txinbox/version.hpp>

#include "backend/claim_row.hpp"
#include "backend/dialect.hpp"
#include "backend/kept_statement.hpp"
#include "backend/native_connection.hpp"
#include "backend/problem.hpp"
#include "backend/purge.hpp"
#include "backend/query.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

enum class CommitStatus {
  committed,
  not_ours,  ///< The guard is gone: this call has committed nothing. Roll back.
};

enum class RollbackStatus {
  ours,      ///< The guard was still there: nothing of the transaction is left.
  not_ours,  ///< The guard was gone: a claim may have been committed.
  failed,    ///< The connection is broken, so nothing is known.
};

/// Who owns the session. On a caller's session, no setting may be left changed, and no setting may be relied on.
enum class Ownership { pool, caller };

/// How a claim is kept from counting as consumed when the handler commits the transaction itself.
///
/// - The database refuses that commit: SQLite in a pool by its hook, PostgreSQL by a deferred constraint trigger.
///   The claim is inserted as `consumed`.
/// - It cannot be refused: the claim is inserted as `torn`, and becomes `consumed` just before our own COMMIT.
enum class Birth { consumed, torn };

constexpr std::string_view to_string(Birth birth) noexcept {
  return detail::to_string(birth == Birth::consumed ? detail::RowState::consumed : detail::RowState::torn);
}

/// One connection, as the inbox uses it. Each call may throw a `DatabaseError`, unless it says
/// otherwise. Texts that we write ourselves hold no bound values.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ConnectionPtr& connection_ptr() const noexcept { return connection_; }

  // --- Settings

  /// Sets what a pool's session needs. Pool only, once for each connection.
  virtual void configure(const PoolOptions&) = 0;

  /// Remembers the settings that `reset` restores. Pool only, after `on_connect`.
  virtual void remember_settings() = 0;

  /// Names the schema where the catalog has found the tables. All statements name it.
  virtual void use_schema(const std::string& schema) = 0;

  /// The session's settings that could lose or merge messages. All have the severity error. It is cheap, because on a
  /// caller's session it runs before each transaction.
  virtual std::vector<Problem> unsafe_settings() = 0;

  /// Allows the user's statements outside a guarded transaction. Pool only; `reset` ends it.
  virtual void lend() {}

  /// Rolls back and restores the remembered settings. Returns false if the connection must be closed.
  virtual bool reset() noexcept = 0;

  /// Whether this is still the connection that was configured, and nothing shows that it is broken. No I/O.
  virtual bool intact() noexcept = 0;

  // --- A guarded transaction

  virtual bool in_transaction() = 0;

  /// Opens the transaction and sets the guard.
  virtual void begin() = 0;

  /// Inserts a claim into the open transaction.
  virtual ClaimReply claim(const ClaimRequest&) = 0;

  /// Turns a free row into a claim, in the open transaction: one whose lease has run out, or one that was consumed too
  /// long ago. `seen` is the row as it was read. Returns false if it has changed since.
  virtual bool take_over(const ClaimRequest& row, const ClaimedRow& seen) {
    return execute(take_over_sql(row, seen)) == 1;
  }

  /// `begin` and `claim`, in one round trip where the protocol allows it. If the row exists, the transaction may have
  /// ended: nothing is in it.
  ///
  /// After three duplicates in a row, it reads the key before it inserts it: a read is cheaper and takes no lock. If
  /// the read finds nothing, the insert still decides.
  ClaimReply begin_and_claim(const ClaimRequest& row) {
    if (expects_duplicate()) {
      if (auto existing = find_committed(row)) return {ClaimStatus::exists, std::move(*existing), true};
    }
    ClaimReply reply = open_and_claim(row);
    record_claim_result(reply.status == ClaimStatus::exists);
    return reply;
  }

  /// Whether to read the next key before it is inserted: because the last keys were all duplicates, or because a read
  /// costs no round trip.
  virtual bool reads_before_insert() const noexcept { return expects_duplicate(); }

  /// Says whether the last key was a duplicate.
  void record_claim_result(bool is_duplicate) noexcept {
    duplicates_in_a_row_ = is_duplicate ? duplicates_in_a_row_ + 1 : 0;
  }

  /// `begin`, and a claim of each row. The rows are sorted by key, each key once. The transaction stays open.
  virtual std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRequest> rows) {
    begin();
    std::vector<ClaimReply> replies;
    replies.reserve(rows.size());
    for (const ClaimRequest& row : rows) replies.push_back(claim(row));
    return replies;
  }

  /// Whether the guard seems to be there, as far as the client knows without a round trip. False: the transaction has
  /// ended or is aborted.
  virtual bool guard_likely_intact() noexcept = 0;

  /// Writes into claimed rows that their work is complete, and its results. The guard must have been verified after the
  /// last statement of a handler. Returns false if a row has vanished.
  virtual bool confirm(std::span<const ClosingClaim>) = 0;

  /// Verifies the guard, confirms these claims, runs these statements, and commits: in one round trip where the
  /// protocol allows it. The transaction's other claims have been confirmed before. After a success, a pool's session
  /// needs no `reset`. After an exception, `may_have_committed` says what is known.
  virtual CommitStatus commit(std::span<const ClosingClaim> claims, std::span<const std::string> writes) = 0;

  /// After `commit` threw: whether COMMIT was sent. Then it may have taken effect.
  virtual bool may_have_committed() const noexcept { return true; }

  /// Whether the guard has refused a handler's own commit, in the open or in the last transaction, and the error's code
  /// does not say so.
  virtual bool refused_commit() const noexcept { return false; }

  /// Whether an earlier handler may have left something on the connection that makes later runs fail and that
  /// `roll_back` does not undo. Then call `reset`.
  virtual bool may_be_broken() const noexcept { return false; }

  /// After a handler threw an exception of a kind that is not known: the code of the error that the handler's last
  /// statement got on this connection. None if it got none, or has gone on after it.
  virtual std::optional<std::string> code_of_handler_error() noexcept = 0;

  /// Ends the transaction that is open, whoever began it, and says whether it was still ours.
  virtual RollbackStatus roll_back() noexcept = 0;

  /// Verifies that the guard is there, and keeps it.
  virtual bool verify_guard() = 0;

  // --- A savepoint of it: one message of a batch can be undone alone

  virtual void savepoint() = 0;

  /// Keeps what was done since the savepoint, and confirms the claim; null if there is none. Returns false if the
  /// savepoint is gone, the transaction is aborted, or the claim has vanished.
  virtual bool release_savepoint(const ClosingClaim* claim) = 0;

  /// Undoes what was done since the savepoint. Returns false if the transaction is not ours any more.
  virtual bool rollback_to_savepoint() noexcept = 0;

  // --- After it, each in a transaction of its own

  /// Waits until the commit that this session has just read is durable: some servers show a commit before it is on the
  /// disk. It needs a consumed row, and returns false if that row is gone. A commit on this session after the read has
  /// the same effect.
  virtual bool wait_until_durable(std::string_view /*consumer*/, std::string_view /*business_key*/) { return true; }

  /// Waits until this node of a cluster shows what the other nodes have committed.
  virtual void catch_up() {}

  // --- Statements that are the same for every database, spelled by its dialect

  /// Valid after `use_schema`.
  const Dialect& dialect() const noexcept { return *dialect_; }

  /// Runs one INSERT, UPDATE or DELETE in the open transaction. Returns the number of rows that it matched.
  virtual std::size_t execute(const std::string& sql) = 0;

  /// Runs a statement in the open transaction that this session keeps prepared from then on. Returns false, and has
  /// done nothing, if it can keep none now: it is a caller's session, or the connection is another.
  virtual bool try_run_kept(const KeptStatement&, std::span<const Parameter>) = 0;

  /// Runs one INSERT, UPDATE or DELETE in a transaction of its own; none may be open. Returns the number of rows that
  /// it matched.
  virtual std::size_t change(const std::string& sql) = 0;

  /// As `change`, for a statement that matches one row at most and ends with `Dialect::returning`. Returns the number
  /// that the statement returns. None: it matched no row, or the number is NULL.
  virtual std::optional<std::int64_t> change_returning(const std::string& sql) = 0;

  /// Runs one SELECT and leaves no transaction open.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// Removes some old rows and commits. It skips rows that another transaction has locked.
  virtual PurgeReply purge_some(const PurgeBatch&) = 0;

 protected:
  Session(Birth birth, ConnectionPtr connection) : birth_(birth), connection_(std::move(connection)) {}

  /// The client library's connection; null when it is closed.
  template <class Handle>
  Handle* native_handle() const noexcept {
    return static_cast<Handle*>(connection_->handle());
  }

  /// The committed row of this key, read outside any transaction. It also returns none where such a read would change
  /// something, as opening a snapshot does.
  virtual std::optional<ClaimedRow> find_committed(const ClaimRequest&) = 0;

  /// The statement of `take_over`. The fence grows, so the last holder of the lease can neither complete nor extend it.
  std::string take_over_sql(const ClaimRequest&, const ClaimedRow& seen) const;

  /// `begin` and `claim`.
  virtual ClaimReply open_and_claim(const ClaimRequest& row) {
    begin();
    return claim(row);
  }

  /// The guard: a savepoint whose name no handler sets by accident. One name for the session is enough, because a
  /// savepoint ends with its transaction.
  std::string guard_ = "txinbox_" + Token::random().hex();
  const std::string step_ = guard_ + "_step";

  const Birth birth_;

  std::unique_ptr<Dialect> dialect_;

 private:
  bool expects_duplicate() const noexcept {
    constexpr int enough_in_a_row = 3;
    return duplicates_in_a_row_ >= enough_in_a_row;
  }

  ConnectionPtr connection_;
  int duplicates_in_a_row_ = 0;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
