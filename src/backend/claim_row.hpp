#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/version.hpp>

#include "base/token.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

using detail::Token;

/// The row that a claim inserts. The strings must outlive this struct.
struct ClaimRequest {
  std::string_view consumer;
  std::string_view business_key;
  std::string_view message_id;
  std::string_view content_hash;  ///< 32 bytes. Empty if the message has no content.
  const Token* token;

  /// Whether the claim waits if another open transaction has inserted the key. A claim that does not wait is `locked`
  /// then. On SQLite a claim always waits, because the other transaction locks the whole database.
  bool waits = true;

  std::chrono::milliseconds valid_for{0};  ///< A consumed row that is older may be claimed again. 0: it may never be.

  /// Whether the claim is inserted with others, before its handler starts. See `undecided_time`.
  bool undecided = false;
};

/// How long the lease of an undecided claim lasts.
///
/// On some databases a handler can commit the claims of its whole batch, which are `torn` then. Recovery deletes the
/// claims whose handlers have not started. Until then, other deliveries of these messages must neither run nor be
/// parked. So these claims have a lease, and a torn row is final only without a lease, or after its end. The time is
/// longer than a transaction of a batch can usually hold its locks.
constexpr std::chrono::milliseconds undecided_time = std::chrono::minutes(1);

/// The row that a claim found for its key, if there was one.
struct ClaimedRow {
  /// Empty if this version does not know the state. `unknown_state` holds it then.
  std::optional<detail::RowState> state;
  std::string unknown_state;

  std::string token;         ///< 16 bytes.
  std::string content_hash;  ///< 32 bytes. Empty if the message had no content.
  std::optional<std::string> result;
  std::optional<std::chrono::milliseconds> lease_remaining = {};  ///< 0 or less: the lease has expired.
  std::int64_t lease_fence = 0;
  std::chrono::milliseconds age{0};  ///< How long the row has been in this state.

  void set_state(std::string_view stored) {
    state = detail::row_state_names.find(stored);
    if (!state) unknown_state = stored;
  }

  /// Whether this torn row is a claim that its owner can still delete. See `undecided_time`.
  bool is_undecided() const noexcept {
    return state == detail::RowState::torn && lease_remaining && lease_remaining->count() > 0;
  }
};

enum class ClaimStatus {
  inserted,
  exists,    ///< `ClaimReply::row` is set.
  vanished,  ///< The insert met a duplicate key, but the row was then deleted. Claim again.
  locked,    ///< Another transaction has the key, and the claim does not wait. Roll back.
};

struct ClaimReply {
  ClaimStatus status;
  ClaimedRow row = {};
  bool ended = false;  ///< `begin_and_claim` has already ended the transaction.
};

/// A claim of the open transaction, as `Session::commit` gets it. The strings and the token must outlive this struct.
struct ClaimToCommit {
  std::string_view consumer;
  std::string_view business_key;
  const Token* token;
  bool confirmed = false;                       ///< The release of its savepoint has confirmed the claim, with its
                                                ///< result.
  bool undecided = false;                       ///< The confirmation must end the claim's lease.
  std::optional<std::string_view> result = {};  ///< The result that the handler stored.
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
