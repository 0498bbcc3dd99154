#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// Collects the unconfirmed claims of a run that failed. Keeps its token if finished claims of it may
  /// be committed.
  void collect(GuardedTransaction&);

  /// Rolls back a run that threw `error`, collects its claims, and resolves them on the run's session. A null error is
  /// a run that did not fail.
  ///
  /// If that session is unusable, the pool closes it, and the claims stay unresolved. Returns the error that the
  /// delivery reports.
  std::exception_ptr abort_and_resolve(GuardedTransaction&, SessionHandle&, const std::exception_ptr& error) noexcept;

  /// Makes a last attempt to resolve the claims, on another session.
  ///
  /// Its own errors are ignored: the caller reports the error that led here.
  void resolve_on_new_session(SessionProvider&) noexcept;

  /// Finds the claims that no commit of ours has confirmed, and resolves them.
  ///
  /// If a handler had started, its claim is marked torn; otherwise the claim is deleted. A claim that is not found is
  /// searched for again at the next call: after a lost connection, the server may still commit it.
  void resolve(backend::Session&);

  /// Returns the keys that were marked torn since the last call.
  std::vector<std::string> take_torn() noexcept { return std::exchange(torn_, {}); }

  /// Whether this row is an unconfirmed claim of this call, which must still be resolved.
  bool is_unconfirmed(std::string_view business_key, const backend::ClaimedRow&) const noexcept;

  /// Whether a run of this call wrote this row and the row was then committed.
  bool is_ours(const backend::ClaimedRow&) const noexcept;

 private:
  /// The claims of one transaction, in the order of their insertion.
  struct Run {
    std::vector<OwnClaim> claims;
    bool found = false;       ///< At least one of the claims was in the table.
    bool reply_lost = false;  ///< A claim may be resolved already.
  };

  bool resolve(backend::Session&, const OwnClaim&);
  void resolve(backend::Session&, Run&);

  std::vector<Run> unconfirmed_;
  std::vector<std::string> torn_;
  std::vector<Token> in_doubt_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
