#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/message.hpp>

#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// How far the handler of a claim got. It decides what happens to the claim if this handler, or another handler of the
/// batch, has committed the transaction.
enum class HandlerProgress {
  not_started,  ///< The claim is deleted.
  started,      ///< The claim is marked torn.
  completed,    ///< Its savepoint was released, so all its work was committed with it: the claim stays.
};

/// A claim that this process inserted. It owns its names because it can outlive its transaction.
struct InsertedClaim {
  std::string consumer;
  std::string business_key;
  Token token;
  HandlerProgress progress;
  bool expires = false;                         ///< The message has a `valid_for`, which counts from the commit.
  bool undecided = false;                       ///< See `backend::undecided_time`.
  std::optional<std::string_view> result = {};  ///< The result that the handler stored; the commit writes it.

  backend::ClaimToCommit closing() const {
    return {consumer, business_key, &token, progress == HandlerProgress::completed, undecided, result};
  }
};

/// Returns `Error` transaction_lost. Its text says what to do.
Error transaction_lost(bool torn);

/// Whether the error can be the database's refusal of a handler's own commit, or of a statement after it.
bool is_refusal(const backend::Session&, const Failure&) noexcept;

/// A transaction that verifies the guard before it commits.
///
/// If the guard or the connection was lost, the handler may have committed claims. After the rollback,
/// `take_unconfirmed_claims` returns them; the owner must resolve them.
class GuardedTransaction {
 public:
  /// `earlier`: the tokens of earlier runs of the same call whose commits are in doubt. `valid_for` does not free their
  /// rows. They must not change while this transaction claims.
  explicit GuardedTransaction(backend::Session& session, std::span<const Token> earlier = {})
      : session_(session), earlier_(earlier) {}
  ~GuardedTransaction() { roll_back(); }
  GuardedTransaction(const GuardedTransaction&) = delete;
  GuardedTransaction& operator=(const GuardedTransaction&) = delete;

  const Token& token() const noexcept { return token_; }

  void begin();

  /// Returns what `begin_and_claim_all` needs to claim this message. It refers to its arguments and to this
  /// transaction.
  backend::ClaimRequest claim_request(std::string_view consumer, const Message&, std::string_view content_hash,
                                      bool waits = true) const noexcept;

  /// Inserts a claim, or takes over the key's row: an expired lease, or one that is older than `valid_for`. The handler
  /// is assumed to start at once.
  ///
  /// Without an earlier `begin`, it also begins the transaction, in the same round trip where possible. Returns the
  /// existing row; none if the claim is ours. If there is a row, the transaction may have ended.
  ///
  /// With `waits` false, it does not wait for another transaction that holds the key. Then it returns a row in the
  /// state `consuming` without a lease, and the caller must roll back.
  std::optional<backend::ClaimedRow> claim(std::string_view consumer, const Message&, std::string_view content_hash,
                                           bool waits = true);

  /// Begins the transaction and inserts claims whose handlers have not started, in one statement where possible.
  ///
  /// The requests must be sorted by key, each key once. Returns for each request the existing row; none if the claim is
  /// ours.
  std::vector<std::optional<backend::ClaimedRow>> begin_and_claim_all(std::span<const backend::ClaimRequest>);

  /// Whether a claim takes over this row: an expired lease, or a row that is older than the request's `valid_for`.
  bool is_free(const backend::ClaimedRow&, const backend::ClaimRequest&) const;

  /// The number of claims that are ours so far.
  std::size_t claims() const noexcept { return claims_.size(); }

  /// Forgets the latest claim, after the rollback to its savepoint, or after its row was deleted.
  void drop_last_claim() noexcept;

  /// Records that the handler of a claim starts. Claims are numbered from 0 in the order of their insertion.
  void handler_begins(std::size_t claim) noexcept { claims_[claim].progress = HandlerProgress::started; }

  /// Sets the result that `commit` writes with a claim. The string must outlive the commit.
  void set_result(std::size_t claim, std::string_view result) noexcept { claims_[claim].result = result; }

  /// Adds an INSERT, UPDATE or DELETE that `commit` runs once it has verified the guard. So the change is committed
  /// with the claims or not at all, and where possible it costs no round trip.
  void add_write(std::string sql) { writes_.push_back(std::move(sql)); }

  /// Releases the savepoint of a message that has no claim.
  ///
  /// Errors: `Error` transaction_lost.
  void release_savepoint();

  /// Releases the savepoint, and confirms the latest claim with its result. The claim is then complete: whoever commits
  /// the transaction also commits the result.
  ///
  /// Errors: `Error` transaction_lost.
  void complete_savepoint(std::optional<std::string_view> result);

  /// Verifies the guard, confirms the claims, runs the added writes, and commits.
  ///
  /// Errors: `Error` transaction_lost, after the rollback; a database error as it was.
  void commit();

  /// Rolls back. Does nothing if the transaction has ended.
  void roll_back() noexcept;

  /// Returns the failure that the delivery reports if it ended with this one. Call it after the rollback.
  ///
  /// It is transaction_lost if the database refused a statement only because the handler had ended the transaction, or
  /// had tried to. Otherwise it is the same failure.
  Failure explain(const Failure&) const noexcept;

  /// Whether COMMIT was sent without a clear reply, so that it may have taken effect.
  bool commit_in_doubt() const noexcept { return state_ == State::in_doubt; }

  /// Whether the session can still be used after the rollback.
  bool session_usable() const noexcept { return session_usable_; }

  /// The keys whose expired lease this transaction took over.
  const std::vector<std::string>& taken_over() const noexcept { return taken_over_; }

  /// Whether the handler may have committed SQL of its own after it had rolled this transaction back.
  bool may_have_foreign_commit() const noexcept { return foreign_commit_; }

  /// Returns the claims that may be in the table although we did not commit them.
  std::vector<InsertedClaim> take_unconfirmed_claims() noexcept { return std::exchange(unconfirmed_claims_, {}); }

 private:
  enum class State { not_begun, open, committed, rolled_back, in_doubt };

  std::optional<backend::ClaimedRow> claim(const backend::ClaimRequest&, HandlerProgress);
  void record_claim(const backend::ClaimRequest&, HandlerProgress);
  bool take_over(const backend::ClaimRequest&, const backend::ClaimedRow&);
  bool has_ended() noexcept;
  bool is_own_claim(const backend::ClaimRequest&, const backend::ClaimedRow&);
  std::span<const backend::ClaimToCommit> confirm_all_but_last_statement(std::span<const backend::ClaimToCommit>);

  backend::Session& session_;
  std::span<const Token> earlier_;
  Token token_ = Token::random();
  State state_ = State::not_begun;
  bool session_usable_ = true;
  bool guard_lost_ = false;      ///< The handler had ended the transaction.
  bool foreign_commit_ = false;  ///< The handler may have committed SQL of its own after it had ended ours.
  std::vector<InsertedClaim> claims_;
  std::vector<InsertedClaim> unconfirmed_claims_;
  std::vector<std::string> writes_;
  std::vector<std::string> taken_over_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
