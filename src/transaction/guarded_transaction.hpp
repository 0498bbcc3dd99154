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

#include "backend/session.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// A message to claim, with the hash of its content.
struct Candidate {
  const Message* message;
  std::string_view content_hash;
};

/// How much of a claim's work is in the transaction. It says what to do with the claim if the handler, or another one
/// in the batch, has committed it.
enum class HandlerProgress {
  not_started,  ///< The claim is removed.
  started,      ///< The claim is torn.
  completed,    ///< A savepoint was released after it, so all of it is there: the claim holds.
};

/// A claim that this process inserted, kept by value so that it can outlive its transaction.
struct OwnClaim {
  std::string consumer;
  std::string business_key;
  Token token;
  HandlerProgress progress;
  std::optional<std::string_view> result = {};  ///< To be written at the commit.

  backend::ClosingClaim closing() const {
    return {consumer, business_key, &token, progress == HandlerProgress::completed, result};
  }
};

/// `Error` transaction_lost, with what is to be done.
Error transaction_lost(bool torn);

/// Whether a database refuses so what a handler does once it has ended the transaction, or tries to.
bool is_refusal(const backend::Session&, const std::exception_ptr&) noexcept;

/// Whether the error is `transaction_lost`.
bool is_transaction_lost(const std::exception_ptr&) noexcept;

/// A transaction that proves that it is still itself before it commits.
///
/// What its end leaves to the owner is told by `take_unconfirmed_claims`: claims that the handler may have
/// committed, because the guard was gone or the connection was.
class GuardedTransaction {
 public:
  explicit GuardedTransaction(backend::Session& session) : session_(session) {}
  ~GuardedTransaction() { roll_back(); }
  GuardedTransaction(const GuardedTransaction&) = delete;
  GuardedTransaction& operator=(const GuardedTransaction&) = delete;

  const Token& token() const noexcept { return token_; }

  void begin();

  /// Inserts a claim, whose handler is taken to begin at once. If `begin` was not called it begins
  /// first, in the same round trip where possible; if the row exists, the transaction may have ended.
  /// Returns the row that exists, null when the claim is ours.
  backend::ClaimedRow* claim(std::string_view consumer, const Candidate&);

  /// Begins and inserts claims of which no handler has begun, in one statement where possible. The
  /// candidates are sorted by key, each key once. Returns the rows that exist, none where the claim is
  /// ours.
  std::vector<std::optional<backend::ClaimedRow>> begin_and_claim_all(std::string_view consumer,
                                                                      std::span<const Candidate>);

  /// How many claims are ours so far.
  std::size_t claims() const noexcept { return claims_.size(); }

  /// Forgets the latest claim: its step was undone.
  void drop_last_claim() noexcept { claims_.pop_back(); }

  /// Notes that the handler of a claim begins. Claims count from 0, in the order in which they were inserted.
  void handler_begins(std::size_t claim) noexcept { claims_[claim].progress = HandlerProgress::started; }

  /// Notes what `commit` writes with a claim. It must outlive the commit.
  void set_result(std::size_t claim, std::string_view result) noexcept { claims_[claim].result = result; }

  /// Ends the step that made the latest claim, which is complete then; or one that made none.
  /// Errors: `Error` transaction_lost.
  void release_savepoint(bool has_claim);

  /// Errors: `Error` transaction_lost, after the rollback; a database error as it was.
  void commit();

  /// Does nothing when the transaction has ended.
  void roll_back() noexcept;

  /// After the rollback: what a delivery ends with that ended with `error`. transaction_lost where the database
  /// has refused a statement only because the handler had ended the transaction, or tried to.
  std::exception_ptr explain(const std::exception_ptr& error) const noexcept;

  /// Whether COMMIT was sent without a clear answer: it may have taken effect.
  bool commit_in_doubt() const noexcept { return state_ == State::in_doubt; }

  /// Whether the session came through in a usable state.
  bool session_usable() const noexcept { return session_usable_; }

  /// The keys that were taken over from a lease that had run out.
  const std::vector<std::string>& taken_over() const noexcept { return taken_over_; }

  /// Claims that may be in the table although we did not commit them.
  std::vector<OwnClaim> take_unconfirmed_claims() noexcept { return std::exchange(unconfirmed_claims_, {}); }

 private:
  enum class State { not_begun, open, committed, rolled_back, in_doubt };

  backend::ClaimRequest row_of(std::string_view consumer, const Candidate&) const noexcept;
  void note_claim(std::string_view consumer, const Candidate&, HandlerProgress);
  bool take_over(const backend::ClaimRequest&);
  bool is_own_claim(const backend::ClaimRequest&, const backend::ClaimedRow&);
  std::span<const backend::ClosingClaim> confirm_most(std::span<const backend::ClosingClaim>);

  backend::Session& session_;
  Token token_ = Token::random();
  State state_ = State::not_begun;
  bool session_usable_ = true;
  bool lost_ = false;  ///< The handler had ended it.
  backend::ClaimedRow existing_;
  std::vector<OwnClaim> claims_;
  std::vector<OwnClaim> unconfirmed_claims_;
  std::vector<std::string> taken_over_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
