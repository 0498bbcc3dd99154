#include "guarded_transaction.hpp"

#include <utility>

#include <txinbox/error.hpp>

namespace txinbox::inline TXINBOX_ABI::detail {

using backend::ClaimStatus;

int mark_torn(backend::Session& session, const std::vector<OwnClaim>& claims) {
  int marked = 0;
  for (const OwnClaim& claim : claims) marked += session.mark_torn(claim.row()) ? 1 : 0;
  return marked;
}

void throw_transaction_lost(bool torn) {
  if (torn) {
    throw Error(ErrorCode::transaction_lost,
                "the message's SQL committed the transaction that txinbox had opened (by COMMIT, by BEGIN, or by DDL); "
                "what ran before that stays, its claim is marked as torn, and later deliveries are parked: take the "
                "statement out, repair the data, then run txinbox forget");
  }
  throw Error(ErrorCode::transaction_lost,
              "the message's SQL ended the transaction that txinbox had opened (by ROLLBACK, or by an error that was "
              "caught and gone on after); nothing is acknowledged, what could be undone was, and the next delivery "
              "runs again: let such errors through to txinbox");
}

bool is_transaction_lost(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return e.code() == ErrorCode::transaction_lost;
  } catch (...) {
    return false;
  }
}

void GuardedTransaction::begin() {
  state_ = State::open;  // also when it throws: whatever was opened is to be rolled back
  session_.begin(token_);
}

backend::ExistingRow* GuardedTransaction::claim(std::string_view consumer, const Message& message) {
  if (state_ != State::not_begun && state_ != State::open) {
    throw Error(ErrorCode::transaction_lost, "the transaction has ended; claim in a new one");
  }
  const backend::ClaimRow row{consumer, message.business_key, message.message_id, &token_};
  // A row can be removed between the refused insert and the read; who does that all the time is not
  // waited for.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    const bool begun = state_ == State::open;
    state_ = State::open;  // also when it throws: whatever was opened is to be rolled back
    auto reply = begun ? session_.claim(row) : session_.begin_and_claim(token_, row);
    if (reply.status == ClaimStatus::inserted) {
      claims_.push_back({std::string(consumer), message.business_key, token_});
      return nullptr;
    }
    if (reply.status == ClaimStatus::exists) {
      existing_ = std::move(reply.row);
      return &existing_;
    }
  }
  throw Error(
      ErrorCode::unknown_state,
      "the row of this key appears and vanishes again and again; look for a purge or a trigger that removes it");
}

void GuardedTransaction::commit(const std::optional<std::string>& result) {
  std::vector<backend::StoredResult> results;
  if (result) {
    for (const OwnClaim& each : claims_) results.push_back({each.consumer, each.business_key, *result});
  }
  backend::CommitStatus status = backend::CommitStatus::not_ours;
  try {
    status = session_.commit(token_, results);
  } catch (...) {
    if (session_.may_have_committed()) {
      session_usable_ = session_.roll_back(token_) != backend::RollbackStatus::failed;
      state_ = State::in_doubt;
    } else {
      roll_back();
    }
    throw;
  }
  if (status == backend::CommitStatus::committed) {
    state_ = State::committed;
    return;
  }
  roll_back();
  throw_transaction_lost(false);
}

void GuardedTransaction::roll_back() noexcept {
  if (state_ != State::open) return;
  state_ = State::rolled_back;
  const backend::RollbackStatus status = session_.roll_back(token_);
  session_usable_ = status != backend::RollbackStatus::failed;
  if (status != backend::RollbackStatus::ours) unproven_ = std::move(claims_);
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
