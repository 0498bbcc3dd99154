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
#include "backend/problem.hpp"
#include "backend/purge.hpp"
#include "backend/query.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

enum class CommitStatus {
  committed,
  not_ours,  ///< The guard is gone: nothing was committed by us. Roll back.
};

enum class RollbackStatus {
  ours,      ///< The guard was still there: nothing of the transaction is left.
  not_ours,  ///< The guard was gone: a claim may have been committed.
  failed,    ///< The connection is of no more use, so nothing is known.
};

/// Who owns the session: it decides what may be left changed, and what may be relied on.
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

/// One connection, as the inbox uses it. Every call may throw the `soci::soci_error` kind of its
/// database unless it says otherwise; own texts hold no bound values.
class Session {
 public:
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // --- A session's life

  /// Makes the settings of a pool's session. Pool only, once per connection.
  virtual void configure(const PoolOptions&) = 0;

  /// Notes the settings that `clean` comes back to. Pool only, after `on_connect`.
  virtual void remember_settings() = 0;

  /// Where the tables are, as found by the catalog at verification; all statements name it.
  virtual void use_schema(const std::string& schema) = 0;

  /// The session's settings that could lose or merge messages, all of severity error. Cheap: on a
  /// caller's session it runs before each transaction.
  virtual std::vector<Problem> unsafe_settings() = 0;

  /// Makes it fit for statements of the user's outside a guarded transaction. Pool only; `clean` undoes it.
  virtual void lend() {}

  /// Rolls back and restores the remembered settings. False: close the connection.
  virtual bool reset() noexcept = 0;

  /// Whether this is still the connection that was configured, and alive as far as is known. No I/O.
  virtual bool intact() noexcept = 0;

  // --- A guarded transaction

  virtual bool in_transaction() = 0;

  /// Opens the transaction and sets the guard.
  virtual void begin() = 0;

  /// Inserts a claim into the open transaction.
  virtual ClaimReply claim(const ClaimRequest&) = 0;

  /// Makes a claim, in the open transaction, of a row whose lease has run out. False: it is not, or no more,
  /// such a row.
  virtual bool take_over(const ClaimRequest& row) { return execute(take_over_sql(row)) == 1; }

  /// Both, in one round trip where the protocol allows. When the row exists the transaction may have
  /// ended: there is nothing in it.
  ///
  /// Redeliveries come in rows. After some duplicates the next key is looked for first, which is cheaper
  /// and waits for nobody; of a key that is not seen there, the insert alone decides, as ever.
  ClaimReply begin_and_claim(const ClaimRequest& row) {
    if (expects_duplicate()) {
      if (auto existing = find_committed(row)) return {ClaimStatus::exists, std::move(*existing), true};
    }
    ClaimReply reply = open_and_claim(row);
    note_claim(reply.status == ClaimStatus::exists);
    return reply;
  }

  /// Whether to look for the next key before it is inserted: the last ones were all there, or a look costs no
  /// round trip.
  virtual bool looks_first() const noexcept { return expects_duplicate(); }
  void note_claim(bool is_duplicate) noexcept { duplicates_in_a_row_ = is_duplicate ? duplicates_in_a_row_ + 1 : 0; }

  /// Both, for several rows, sorted by key, each key once. The transaction stays open.
  virtual std::vector<ClaimReply> begin_and_claim_all(std::span<const ClaimRequest> rows) {
    begin();
    std::vector<ClaimReply> replies;
    replies.reserve(rows.size());
    for (const ClaimRequest& row : rows) replies.push_back(claim(row));
    return replies;
  }

  /// What is known without a round trip: false when the transaction is not ours any more, or aborted.
  virtual bool guard_likely_intact() noexcept = 0;

  /// Writes into claimed rows that their work is complete, with its results. The guard must have been proven
  /// after the last statement of a handler. False: a row has vanished.
  virtual bool confirm(std::span<const ClosingClaim>) = 0;

  /// Proves the guard, confirms these claims, commits. The transaction's other claims have been confirmed.
  /// Leaves a pool's session clean when it succeeds. When it throws, `may_have_committed` says what is known.
  virtual CommitStatus commit(std::span<const ClosingClaim> claims) = 0;

  /// After `commit` threw: whether COMMIT was sent, so that it may have taken effect.
  virtual bool may_have_committed() const noexcept { return true; }

  /// Whether the guard has refused a commit of the handler's in the transaction that is open or was ended last, with
  /// an error that its code does not tell.
  virtual bool refused_commit() const noexcept { return false; }

  /// Whether a run can have failed for what an earlier handler left on the connection, and `roll_back` does not
  /// see: let `clean` look.
  virtual bool may_be_reason() const noexcept { return false; }

  /// Ends whatever transaction is open, and says whether it was still ours.
  virtual RollbackStatus roll_back() noexcept = 0;

  /// Proves the guard, and keeps it.
  virtual bool verify_guard() = 0;

  // --- A step of it: one message of a batch, which can be undone alone

  virtual void savepoint() = 0;

  /// Proves that the step is still there, keeps what it did, and confirms its claim; null where it has none.
  /// False: the step is gone or aborted, or the claim has vanished.
  virtual bool release_savepoint(const ClosingClaim* claim) = 0;

  /// Undoes the step. False: the transaction is not ours any more.
  virtual bool rollback_to_savepoint() noexcept = 0;

  // --- Afterwards, each in a transaction of its own

  /// Returns when no crash can take away any more what others committed and this session has read: some
  /// servers show a commit before it is on the disk. It needs a consumed row; false when that is gone. A
  /// commit of one's own after the read does it as well.
  virtual bool wait_until_durable(std::string_view /*consumer*/, std::string_view /*business_key*/) { return true; }

  /// Waits until what the other nodes of a cluster have committed is seen on this one.
  virtual void catch_up() {}

  // --- Statements that are the same for every database, spelled by its dialect

  /// Valid after `use_schema`.
  const Dialect& dialect() const noexcept { return *dialect_; }

  /// Runs one INSERT, UPDATE or DELETE in the open transaction. Returns how many rows it found to change.
  virtual std::size_t execute(const std::string& sql) = 0;

  /// Runs one INSERT, UPDATE or DELETE in a transaction of its own; none may be open. Returns how many rows
  /// it found to change.
  virtual std::size_t change(const std::string& sql) = 0;

  /// The same for a statement that finds one row at most and ends with `Dialect::returning`: the number that it
  /// returns. None: it found no row to change, or the number is NULL.
  virtual std::optional<std::int64_t> change_returning(const std::string& sql) = 0;

  /// Runs one SELECT and leaves no transaction open.
  virtual std::vector<Row> read(const std::string& sql, std::size_t columns) = 0;

  /// Removes some old rows and commits. It waits for no row that another holds: that one is left.
  virtual PurgeReply purge_some(const PurgeBatch&) = 0;

 protected:
  explicit Session(Birth birth) : birth_(birth) {}

  /// The committed row of this key, read outside any transaction. None, too, where such a read would
  /// not be free of consequences.
  virtual std::optional<ClaimedRow> find_committed(const ClaimRequest&) = 0;

  /// The fence grows, so that whoever held the lease can neither complete nor extend it.
  std::string take_over_sql(const ClaimRequest&) const;

  /// `begin` and `claim`.
  virtual ClaimReply open_and_claim(const ClaimRequest& row) {
    begin();
    return claim(row);
  }

  /// The guard: a savepoint of a name that no handler can set by accident. One name a session will do:
  /// the savepoint itself ends with its transaction.
  const std::string guard_ = "txinbox_" + Token::random().hex();
  const std::string step_ = guard_ + "_step";

  const Birth birth_;

  std::unique_ptr<Dialect> dialect_;

 private:
  bool expects_duplicate() const noexcept {
    constexpr int enough_in_a_row = 3;
    return duplicates_in_a_row_ >= enough_in_a_row;
  }

  int duplicates_in_a_row_ = 0;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
