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

/// What the runs of one call may have left in the table without having committed it. A handler that commits the
/// transaction itself commits its claims with it, where no database refuses that.
class ClaimRecovery {
 public:
  /// Takes what a run that ended badly left.
  void collect(GuardedTransaction&);

  /// Rolls back a run that threw `error`, takes what it left, and settles that on its own session, or
  /// has the session closed if it is of no more use. Returns what the delivery ends with.
  std::exception_ptr abort_and_resolve(GuardedTransaction&, SessionHandle&, const std::exception_ptr& error) noexcept;

  /// The last chance to settle, on another session. An error then does not count: the one that led here
  /// does.
  void resolve_on_new_session(SessionProvider&) noexcept;

  /// Looks for the claims that no commit of ours has confirmed. Those of handlers that had begun are torn; the
  /// others are removed. What is not there may still come, while a lost connection's server works on: it is looked
  /// for again at the next call.
  void resolve(backend::Session&);

  /// The keys that were found torn since the last call of this.
  std::vector<std::string> take_torn() noexcept { return std::exchange(torn_, {}); }

  /// Whether this row is a claim of this call's that no commit of ours has confirmed, and that is to be settled.
  bool is_unconfirmed(std::string_view business_key, const backend::ClaimedRow&) const noexcept;

  /// Whether this row was written by a run of this call, whose commit then took effect.
  bool is_ours(const backend::ClaimedRow&) const noexcept;

 private:
  /// The claims of one transaction, in the order of their making.
  struct Run {
    std::vector<OwnClaim> claims;
    bool found = false;   ///< One of them was there.
    bool unsure = false;  ///< An answer was lost: what was there may be settled already.
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
