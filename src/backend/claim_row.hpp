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
  std::string_view content_hash;  ///< 32 bytes; empty when the message has no content.
  const Token* token;

  /// Whether the claim waits for another transaction that has inserted the key and not yet ended. Otherwise it is
  /// `locked`. SQLite always waits: there the other transaction has the whole database.
  bool waits = true;

  std::chrono::milliseconds valid_for{0};  ///< A consumed row that is older is free. 0: it is never free.
};

/// The row that a claim found, if the key was there.
struct ClaimedRow {
  /// None: a state that this version does not know; `unknown_state` holds it.
  std::optional<detail::RowState> state;
  std::string unknown_state;

  std::string token;         ///< 16 bytes.
  std::string content_hash;  ///< 32 bytes, or empty.
  std::optional<std::string> result;
  std::optional<std::chrono::milliseconds> lease_remaining = {};  ///< 0 or less: the lease has run out.
  std::int64_t lease_fence = 0;
  std::chrono::milliseconds age{0};  ///< How long the row has been in this state.

  void set_state(std::string_view stored) {
    state = detail::row_state_names.find(stored);
    if (!state) unknown_state = stored;
  }
};

enum class ClaimStatus {
  inserted,
  exists,    ///< `ClaimReply::row` is set.
  vanished,  ///< The insert met a duplicate, but then the row was gone. Claim again.
  locked,    ///< A claim that does not wait met another transaction. Roll back.
};

struct ClaimReply {
  ClaimStatus status;
  ClaimedRow row = {};
  bool ended = false;  ///< After `begin_and_claim`: no transaction is open any more.
};

/// A claim of the open transaction, for `Session::commit`. What it points to must outlive it.
struct ClosingClaim {
  std::string_view consumer;
  std::string_view business_key;
  const Token* token;
  bool confirmed = false;                       ///< Already, when its savepoint was released; without a result.
  std::optional<std::string_view> result = {};  ///< What the handler stored.
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
