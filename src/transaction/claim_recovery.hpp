#pragma once

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "pool/session_provider.hpp"
#include "transaction/guarded_transaction.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Finds and resolves the claims that the runs of one call left in the table without a confirmed commit.
///
/// A handler that commits the transaction itself also commits its claims, unless the database refuses that commit.
class ClaimRecovery {
 public:
  /// Collects the unconfirmed claims of a run that failed. If finished claims of the run may be committed, also keeps
  /// the run's token.
  void collect(GuardedTransaction&);

  /// Rolls back a run that failed, collects its claims, and resolves them on the run's session.
  ///
  /// If that session is unusable, the pool closes it, and the claims stay unresolved. Returns the failure that the
  /// delivery reports. A failure without an exception means that the run did not fail.
  Failure abort_and_resolve(GuardedTransaction&, SessionHandle&, const Failure&) noexcept;

  /// Makes a last attempt to resolve the claims, on another session.
  ///
  /// It ignores its own errors, because the caller reports the error that happened before.
  void resolve_on_new_session(SessionProvider&) noexcept;

  /// Finds the claims that no commit of ours has confirmed, and resolves them.
  ///
  /// If a handler had started, its claim is marked torn; otherwise the claim is deleted. If the handler may have
  /// committed SQL after it had rolled the claim back, a torn row is inserted. A claim that is not found is searched
  /// for again at the next call: after a lost connection, the server may still commit it.
  void resolve(backend::Session&);

  /// Records the key as torn if a run of this call wrote this row and the handler committed it. In this case, the reply
  /// to the statement that marked the row was lost. Returns whether this is the case.
  bool record_torn(std::string_view business_key, const backend::ClaimedRow&);

  /// Returns the keys that were marked or recorded as torn since the last call. Each key is returned once.
  std::vector<std::string> take_torn() noexcept { return std::exchange(torn_, {}); }

  /// Whether this row is an unconfirmed claim of this call, which must still be resolved.
  bool is_unconfirmed(std::string_view business_key, const backend::ClaimedRow&) const noexcept;

  /// The tokens of the runs of this call whose commits may have taken effect.
  std::span<const Token> in_doubt() const noexcept { return in_doubt_; }

  /// Whether a run of this call wrote this row and the row was then committed.
  bool is_ours(const backend::ClaimedRow&) const noexcept;

  /// Whether a run that is not resolved has undecided claims.
  bool has_undecided() const noexcept { return std::ranges::any_of(unconfirmed_, &ClaimRecovery::is_undecided); }

  /// As `resolve`, but first looks for the claims of each run with a read, which waits for no lock. A run without a
  /// visible claim stays unresolved, and so does a run that meets an error of the database.
  void resolve_visible(backend::Session&);

  /// Takes over the runs of `other` that are not resolved and have undecided claims.
  void adopt_undecided(ClaimRecovery& other);

  /// Gives up the runs that ended before this time.
  void drop_runs_before(std::chrono::steady_clock::time_point);

 private:
  /// The claims of one transaction, in the order of their insertion.
  struct Run {
    std::vector<InsertedClaim> claims;
    std::chrono::steady_clock::time_point ended_at{};
    bool found = false;           ///< At least one of the claims was in the table.
    bool reply_lost = false;      ///< A claim may be resolved already.
    bool foreign_commit = false;  ///< See `GuardedTransaction::may_have_foreign_commit`.
    bool inserting = false;       ///< Some of its torn rows may be inserted already.
  };

  static bool is_resolved(const Run&) noexcept;
  static bool is_undecided(const Run&) noexcept;
  void add_torn(std::string_view business_key);
  bool resolve(backend::Session&, const InsertedClaim&);
  void resolve(backend::Session&, Run&);
  void insert_torn(backend::Session&, Run&);

  std::vector<Run> unconfirmed_;
  std::vector<std::string> torn_;
  std::vector<std::string> ever_torn_;  ///< The keys that were ever in `torn_`.
  std::vector<Token> in_doubt_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
