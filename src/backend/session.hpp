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
#include "backend/native_connection.hpp"
#include "backend/purge.hpp"
#include "backend/query.hpp"
#include "backend/report.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

enum class CommitStatus {
  committed,
  not_ours,  ///< The guard no longer exists: this call has committed nothing. Roll back.
};

enum class RollbackStatus {
  ours,      ///< The guard still existed: nothing of the transaction was committed.
  not_ours,  ///< The guard no longer existed: a claim may have been committed.
  failed,    ///< The connection is broken, so the result is not known.
};

/// Who owns the session. On a caller's session, txinbox leaves no setting changed and relies on no setting.
enum class Ownership { pool, caller };

/// In which transaction a statement runs.
enum class TransactionUse {
  own,   ///< One of its own. No transaction may be open.
  open,  ///< The open one.
};

/// How a claim is kept from counting as consumed when the handler commits the transaction itself.
///
/// - The database refuses that commit: SQLite in a pool by its hook, PostgreSQL by a deferred constraint trigger.
///   The claim is inserted as `consumed`.
/// - It cannot be refused: the claim is inserted as `torn`, and becomes `consumed` just before our own COMMIT.
enum class InitialState { consumed, torn };

constexpr std::string_view to_string(InitialState state) noexcept {
  return detail::to_string(state == InitialState::consumed ? detail::RowState::consumed : detail::RowState::torn);
}

/// The effect of a statement.
struct Changed {
  std::size_t rows;                    ///< The number of rows that it matched.
  std::optional<std::int64_t> number;  ///< The value of `Dialect::returning`. None if it is NULL, or without a row.
};

/// One connection, as the inbox uses it. Each call may throw a `DatabaseError`, unless its comment says otherwise. The
/// error texts of txinbox itself contain no bound values.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const ConnectionPtr& connection_ptr() const noexcept { return connection_; }

  // --- Settings

  /// Makes the settings that a pool's session needs. Only for a pool, once for each connection.
  virtual void configure(const PoolOptions&) = 0;

  /// Remembers the settings that `reset` restores. Only for a pool, after `on_connect`.
  virtual void remember_settings() = 0;

  /// Sets the schema in which the catalog has found the tables. All statements name this schema.
  virtual void use_schema(const std::string& schema) = 0;

  /// Returns the settings of the session that could lose or merge messages. Each has the severity error. The check is
  /// cheap, because it runs before each transaction on a caller's session.
  virtual std::vector<Problem> unsafe_settings() = 0;

  /// Whether the functions that begin the next transaction find out in their own round trip whether somebody has
  /// changed the settings since `unsafe_settings`. If they find unsafe ones, or an open transaction, they begin nothing
  /// and throw `Error` unsafe_connection or transaction_open.
  virtual bool will_check_settings() noexcept { return false; }

  /// Throws if a caller's session finds the inbox of another schema than that of `use_schema`. A claim in one inbox
  /// says nothing about the messages of another one. The functions that begin a transaction also do this.
  ///
  /// Errors: `Error` unsafe_connection.
  virtual void refuse_other_inbox() {}

  /// Allows the user's statements outside a guarded transaction. Only for a pool. `reset` ends it.
  virtual void lend() {}

  /// Rolls back and restores the remembered settings. Returns false if the connection must be closed.
  virtual bool reset() noexcept = 0;

  /// Whether the connection is still the one that was configured, with no sign that it is broken. It does no I/O.
  virtual bool intact() noexcept = 0;

  // --- A guarded transaction

  virtual bool in_transaction() = 0;

  /// Opens the transaction and sets the guard.
  virtual void begin() = 0;

  /// Inserts a claim into the open transaction.
  virtual ClaimReply claim(const ClaimRequest&) = 0;

  /// Whether this claim is inserted with a lease that ends after `undecided_time`.
  bool has_lease(const ClaimRequest& row) const noexcept {
    return row.undecided && initial_state_ == InitialState::torn;
  }

  /// Takes a row over in the open transaction. The lease of the row has expired, or the row was consumed too long ago.
  /// `seen` is the row as the caller has read it. Returns false if the row has changed since then.
  virtual bool take_over(const ClaimRequest& row, const ClaimedRow& seen) {
    return execute(take_over_sql(row, seen)) == 1;
  }

  /// Calls `begin` and `claim`, in one round trip if the protocol allows this. If the key has a row, the call may also
  /// have ended the transaction, which is empty then.
  ///
  /// After three duplicates in a row, it reads the key before it inserts it, because a read is cheaper. If the read
  /// finds nothing, the insert still decides.
  ClaimReply begin_and_claim(const ClaimRequest& row) {
    if (expects_duplicate()) {
      if (auto existing = find_committed(row)) return {ClaimStatus::exists, std::move(*existing), true};
    }
    ClaimReply reply = open_and_claim(row);
    record_claim_result(reply.status == ClaimStatus::exists);
    return reply;
  }

  /// Whether to read the next key before the insert. There are two reasons: the last keys were all duplicates, or a
  /// read costs no round trip.
  virtual bool reads_before_insert() const noexcept { return expects_duplicate(); }

  /// Records whether the last key was a duplicate.
  void record_claim_result(bool is_duplicate) noexcept {
    duplicates_in_a_row_ = is_duplicate ? duplicates_in_a_row_ + 1 : 0;
  }

  /// Calls `begin`, and claims each row. The rows must be sorted by key, and must have each key once. The transaction
  /// stays open.
  virtual std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRequest> rows) {
    begin();
    std::vector<ClaimReply> replies;
    replies.reserve(rows.size());
    for (const ClaimRequest& row : rows) replies.push_back(claim(row));
    return replies;
  }

  /// Whether a statement that stays prepared is there in the next transaction. A pooler can run it on another
  /// connection of the server.
  virtual bool keeps_statements() const noexcept { return true; }

  /// Whether the guard probably exists, as far as the client knows without a round trip. If this is false, the
  /// transaction has ended or is aborted.
  virtual bool guard_likely_intact() noexcept = 0;

  /// Marks claimed rows as complete, and stores their results. The caller must have verified the guard after the last
  /// statement of a handler. Returns false if a row no longer exists.
  virtual bool confirm(std::span<const ClaimToCommit>) = 0;

  /// Verifies the guard, confirms these claims, runs the statements in `writes`, and commits. This takes one round trip
  /// if the protocol allows it. The other claims of the transaction must be confirmed before. After a success, a pool's
  /// session needs no `reset`. After an exception, `may_have_committed` says what is known.
  virtual CommitStatus commit(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) = 0;

  /// Call it after `commit` threw. Whether COMMIT was sent, and so may have taken effect.
  virtual bool may_have_committed() const noexcept { return true; }

  /// Whether the guard has refused a handler's own commit, in the open transaction or in the last one, and the error's
  /// code does not show this.
  virtual bool refused_commit() const noexcept { return false; }

  /// Call it before `commit` or `roll_back`. Whether the handler may have committed SQL in a transaction of its own,
  /// provided that it had ended ours. It does no I/O. The answer means nothing if the transaction is still ours.
  virtual bool may_have_foreign_commit() const noexcept { return false; }

  /// Whether an earlier handler may have left something on the connection that makes later runs fail, and that
  /// `roll_back` does not undo. If so, call `reset`.
  virtual bool may_be_broken() const noexcept { return false; }

  /// Call it after a handler threw an exception of an unknown kind. Returns the code of the error that the handler's
  /// last statement got on this connection. Returns none if it got no error, or if the handler continued after the
  /// error.
  virtual std::optional<std::string> code_of_handler_error() noexcept = 0;

  /// Ends the open transaction, no matter who began it. Returns whether it was still ours.
  virtual RollbackStatus roll_back() noexcept = 0;

  /// Verifies that the guard exists. The guard stays.
  virtual bool verify_guard() = 0;

  // --- A savepoint in the transaction, so that one message of a batch can be rolled back alone

  virtual void savepoint() = 0;

  /// Keeps the changes since the savepoint, and confirms the claim. `claim` is null if there is no claim. Returns false
  /// if the savepoint no longer exists, the transaction is aborted, or the claim no longer exists.
  virtual bool release_savepoint(const ClaimToCommit* claim) = 0;

  /// Rolls the changes since the savepoint back. Returns false if the transaction is no longer ours.
  virtual bool rollback_to_savepoint() noexcept = 0;

  // --- After the transaction, each call in a transaction of its own

  /// Whether the server shows commits of other sessions before they are on the disk. A later commit of this session
  /// that changes something makes what this session has read durable, too.
  virtual bool shows_commits_early() const noexcept { return false; }

  /// Waits until the commit that this session has just read is durable: some servers show a commit before it is on the
  /// disk. It needs a consumed row, and returns false if that row no longer exists. Instead of this call, any later
  /// commit on this session has the same effect.
  virtual bool wait_until_durable(std::string_view /*consumer*/, std::string_view /*business_key*/) { return true; }

  /// Returns the UPDATE of a consumed row after which the commit of its transaction waits until that row is durable.
  std::string keep_sql(std::string_view consumer, std::string_view business_key) const;

  /// Whether a SELECT with `Dialect::past_snapshot` in the open transaction reads the latest commits.
  virtual bool reads_latest_commits() { return true; }

  /// Waits until this node of a cluster shows what the other nodes have committed.
  virtual void catch_up() {}

  // --- Statements that are the same on every database, in the syntax of its dialect

  /// Call it only after `use_schema`.
  const Dialect& dialect() const noexcept { return *dialect_; }

  /// Runs one INSERT, UPDATE or DELETE in the open transaction. Returns the number of rows that it matched.
  virtual std::size_t execute(const std::string& sql) = 0;

  /// Runs a statement in the open transaction. The session keeps the statement prepared from then on. Returns false,
  /// and does nothing, if the session cannot keep it: the session is a caller's, or its connection was replaced.
  virtual bool try_run_kept(const KeptStatement&, std::span<const Parameter>) = 0;

  /// Runs one INSERT, UPDATE or DELETE in a transaction of its own. No transaction may be open. Returns the number of
  /// rows that it matched.
  virtual std::size_t change(const std::string& sql) = 0;

  /// Runs one INSERT, UPDATE or DELETE with `change` or with `execute`.
  std::size_t run(const std::string& sql, TransactionUse use) {
    return use == TransactionUse::own ? change(sql) : execute(sql);
  }

  /// Does what `change` does. A pool's session keeps the statement prepared from then on. Use the number only if the
  /// statement matches at most one row, and ends with `Dialect::returning`.
  virtual Changed change_kept(const KeptStatement&, std::span<const Parameter>) = 0;

  /// Runs one SELECT and leaves no transaction open.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// Does what `read` does. A pool's session keeps the statement prepared from then on.
  virtual std::vector<Row> read_kept(const KeptStatement&, std::span<const Parameter>, std::size_t columns) = 0;

  /// The id of the database, which `detail::outbox_database_id` reads once for each connection and schema.
  struct DatabaseId {
    const void* handle = nullptr;
    std::string table;
    std::string id;
  };
  DatabaseId& database_id() noexcept { return database_id_; }

  /// Removes some old rows and commits. It skips rows that another transaction has locked.
  virtual PurgeReply purge_some(const PurgeBatch&) = 0;

 protected:
  Session(InitialState initial_state, ConnectionPtr connection)
      : initial_state_(initial_state), connection_(std::move(connection)) {}

  /// Returns the client library's connection. Null if it is closed.
  template <class Handle>
  Handle* native_handle() const noexcept {
    return static_cast<Handle*>(connection_->handle());
  }

  /// Reads the committed row of this key outside any transaction. Returns none also if the read would have a side
  /// effect, for example would open a snapshot.
  virtual std::optional<ClaimedRow> find_committed(const ClaimRequest&) = 0;

  /// Returns the statement of `take_over`. It increases the fence, so the last owner of the lease can neither complete
  /// nor extend it.
  std::string take_over_sql(const ClaimRequest&, const ClaimedRow& seen) const;

  /// Calls `begin` and `claim`.
  virtual ClaimReply open_and_claim(const ClaimRequest& row) {
    begin();
    return claim(row);
  }

  /// The name of the guard, which is a savepoint. The name is random, so that no handler sets it by accident. One name
  /// is enough for the session, because a savepoint ends with its transaction.
  std::string guard_ = "txinbox_" + Token::random().hex();
  const std::string step_ = guard_ + "_step";

  const InitialState initial_state_;

  std::unique_ptr<Dialect> dialect_;

 private:
  bool expects_duplicate() const noexcept {
    constexpr int enough_in_a_row = 3;
    return duplicates_in_a_row_ >= enough_in_a_row;
  }

  ConnectionPtr connection_;
  int duplicates_in_a_row_ = 0;
  DatabaseId database_id_;
};

/// Throws if a transaction is open.
///
/// Errors: `Error` transaction_open.
void refuse_open_transaction(Session& session);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
