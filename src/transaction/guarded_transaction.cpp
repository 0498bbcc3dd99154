#include "transaction/guarded_transaction.hpp"

#include <algorithm>
#include <utility>

#include "backend/error_class.hpp"
#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "message/content_hash.hpp"
#include "tables/consumed_message_table.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using backend::ClaimStatus;

namespace {

/// Whether the lease of this row has expired, and this message may take it over.
bool is_free_lease(const backend::ClaimedRow& row, std::string_view content_hash) {
  return row.state == RowState::consuming && row.lease_remaining && row.lease_remaining->count() <= 0 &&
         !is_conflict(row.content_hash, content_hash);
}

/// Whether this row was consumed longer ago than the message's `valid_for`.
bool has_expired(const backend::ClaimedRow& row, const backend::ClaimRequest& request) {
  return request.valid_for.count() > 0 && row.state == RowState::consumed && row.age >= request.valid_for &&
         row.token != request.token->bytes();
}

/// Whether the error means that the guard refused a commit.
bool is_refused_commit(const backend::Session& session, const Failure& failure) noexcept {
  return failure.error_class() == backend::ErrorClass::commit_refused ||
         (session.refused_commit() && failure.is_of_database());
}

}  // namespace

Error transaction_lost(bool torn) {
  if (torn) {
    return {ErrorCode::transaction_lost,
            "the handler committed the transaction that txinbox had opened (by COMMIT, by BEGIN, or by DDL). What it "
            "wrote before that stays in the database. The message is marked torn, and later deliveries are parked. "
            "Remove that statement from the handler, repair the data, then run `txinbox forget`"};
  }
  return {
      ErrorCode::transaction_lost,
      "the handler ended the transaction that txinbox had opened (by ROLLBACK, by a COMMIT or a SET CONSTRAINTS ALL "
      "IMMEDIATE that the database refused, or because it caught a database error and continued), or left a result "
      "unread or a COPY open. txinbox rolled back and did not acknowledge the message; the next delivery runs again. "
      "Remove that statement from the handler, do not catch database errors there, and read all results"};
}

bool is_refusal(const backend::Session& session, const Failure& failure) noexcept {
  return is_refused_commit(session, failure) || failure.error_class() == backend::ErrorClass::read_only;
}

/// Whether this message may take the row over. A row that an earlier run of the same call has committed is not free,
/// even if it is older than `valid_for` by now: the handler's work is done.
bool GuardedTransaction::is_free(const backend::ClaimedRow& row, const backend::ClaimRequest& request) const {
  if (is_free_lease(row, request.content_hash)) return true;
  return has_expired(row, request) &&
         std::ranges::none_of(earlier_, [&](const Token& token) { return token.bytes() == row.token; });
}

backend::ClaimRequest GuardedTransaction::claim_request(std::string_view consumer, const Message& message,
                                                        std::string_view content_hash, bool waits) const noexcept {
  return {consumer, message.business_key, message.message_id, content_hash, &token_, waits, message.valid_for};
}

void GuardedTransaction::record_claim(const backend::ClaimRequest& request, HandlerProgress progress) {
  claims_.push_back({std::string(request.consumer), std::string(request.business_key), token_, progress,
                     request.valid_for.count() > 0, session_.has_lease(request)});
}

void GuardedTransaction::begin() {
  state_ = State::open;  // set before the call: if begin() throws, an open transaction must still be rolled back
  session_.begin();
}

std::optional<backend::ClaimedRow> GuardedTransaction::claim(std::string_view consumer, const Message& message,
                                                             std::string_view content_hash, bool waits) {
  return claim(claim_request(consumer, message, content_hash, waits), HandlerProgress::started);
}

std::optional<backend::ClaimedRow> GuardedTransaction::claim(const backend::ClaimRequest& request,
                                                             HandlerProgress progress) {
  if (state_ != State::not_begun && state_ != State::open) {
    throw Error(ErrorCode::transaction_lost, "the transaction has ended; claim in a new one");
  }
  // Another session can delete the row between the refused insert and the read. Then try again, but not forever.
  constexpr int tries = 5;
  for (int i = 0; i < tries; ++i) {
    const bool begun = state_ == State::open;
    state_ = State::open;
    auto reply = begun ? session_.claim(request) : session_.begin_and_claim(request);
    if (reply.ended) state_ = State::not_begun;
    if (reply.status == ClaimStatus::inserted) {
      record_claim(request, progress);
      return std::nullopt;
    }
    if (reply.status == ClaimStatus::locked) {
      return backend::ClaimedRow{
          .state = RowState::consuming, .unknown_state = {}, .token = {}, .content_hash = {}, .result = {}};
    }
    if (reply.status == ClaimStatus::exists) {
      if (is_own_claim(request, reply.row)) reply.row.state = RowState::consumed;
      if (!is_free(reply.row, request)) return std::move(reply.row);
      if (state_ == State::not_begun) begin();
      if (take_over(request, reply.row)) {
        record_claim(request, progress);
        return std::nullopt;
      }
    }
  }
  throw Error(ErrorCode::unknown_state,
              "the row of this key was inserted and deleted several times during the claim; look for a purge or a "
              "trigger that deletes it");
}

/// Whether this transaction itself has already claimed the key. Until the commit, its own claim can read `torn`. A
/// claim that the handler has committed reads `torn` too; only the guard shows the difference.
bool GuardedTransaction::is_own_claim(const backend::ClaimRequest& request, const backend::ClaimedRow& existing) {
  if (existing.state != RowState::torn || existing.token != request.token->bytes()) return false;
  if (!session_.verify_guard()) throw transaction_lost(true);
  return true;
}

/// Takes over a free row. Returns false if another worker has taken it over first.
bool GuardedTransaction::take_over(const backend::ClaimRequest& request, const backend::ClaimedRow& existing) {
  if (!session_.take_over(request, existing)) return false;
  if (existing.state == RowState::consuming) taken_over_.emplace_back(request.business_key);
  return true;
}

void GuardedTransaction::drop_last_claim() noexcept {
  if (!taken_over_.empty() && taken_over_.back() == claims_.back().business_key) taken_over_.pop_back();
  claims_.pop_back();
}

std::vector<std::optional<backend::ClaimedRow>> GuardedTransaction::begin_and_claim_all(
    std::span<const backend::ClaimRequest> requests) {
  state_ = State::open;
  auto replies = session_.begin_and_claim_all(requests);
  std::vector<std::optional<backend::ClaimedRow>> existing(requests.size());
  claims_.reserve(requests.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i].status == ClaimStatus::inserted) {
      record_claim(requests[i], HandlerProgress::not_started);
    } else if (replies[i].status == ClaimStatus::exists && !is_free(replies[i].row, requests[i])) {
      existing[i] = std::move(replies[i].row);
    } else {
      existing[i] = claim(requests[i], HandlerProgress::not_started);
      if (existing[i] && existing[i]->token == token_.bytes()) {  // the statement above had inserted our claim
        existing[i].reset();
        record_claim(requests[i], HandlerProgress::not_started);
      }
    }
  }
  return existing;
}

void GuardedTransaction::release_savepoint() {
  if (!session_.release_savepoint(nullptr)) throw transaction_lost(false);
}

void GuardedTransaction::complete_savepoint(std::optional<std::string_view> result) {
  InsertedClaim& claim = claims_.back();
  backend::ClaimToCommit closing = claim.closing();
  closing.result = result;
  if (!session_.release_savepoint(&closing)) throw transaction_lost(false);
  claim.progress = HandlerProgress::completed;
}

/// Confirms claims before the commit until the rest fits into one statement. The limit is far below every server's
/// limit on the size of a statement. Returns the rest.
std::span<const backend::ClaimToCommit> GuardedTransaction::confirm_all_but_last_statement(
    std::span<const backend::ClaimToCommit> claims) {
  constexpr std::size_t most_bytes = 256UL * 1024;
  constexpr std::size_t statement_bytes = 1024;
  bool verified = false;
  for (;;) {
    std::size_t bytes = 0;
    std::size_t fit = 0;
    for (; fit < claims.size(); ++fit) {
      const backend::ClaimToCommit& each = claims[fit];
      bytes += each.business_key.size() + (each.result ? each.result->size() + statement_bytes : 0);
      if (bytes > most_bytes && fit > 0) break;
    }
    if (fit == claims.size()) return claims;
    if (!verified && !session_.verify_guard()) throw transaction_lost(false);
    verified = true;
    if (!session_.confirm(claims.first(fit))) throw transaction_lost(false);
    claims = claims.subspan(fit);
  }
}

/// Whether the handler has certainly ended the transaction, as far as the client knows without I/O. After a lost
/// connection it does not know this.
bool GuardedTransaction::has_ended() noexcept { return !session_.guard_likely_intact() && session_.intact(); }

void GuardedTransaction::commit() {
  std::vector<backend::ClaimToCommit> claims;
  claims.reserve(claims_.size());
  const ConsumedMessageTable table(session_);
  for (const InsertedClaim& each : claims_) {
    claims.push_back(each.closing());
    if (each.expires) add_write(table.restart_clock_sql(each.consumer, each.business_key, each.token));
  }
  std::span<const backend::ClaimToCommit> rest;
  try {
    rest = confirm_all_but_last_statement(claims);
  } catch (...) {
    roll_back();
    throw;
  }
  // If so, this commit can only fail, and the claims must be looked for.
  foreign_commit_ = has_ended() && session_.may_have_foreign_commit();
  backend::CommitStatus status = backend::CommitStatus::not_ours;
  try {
    status = session_.commit(rest, writes_);
  } catch (...) {
    if (session_.may_have_committed() && !foreign_commit_) {
      session_usable_ = session_.roll_back() != backend::RollbackStatus::failed;
      state_ = State::in_doubt;
    } else {
      roll_back();
      // If the handler had ended the transaction, `commit` would have returned `not_ours`. Its own statements have
      // released the guard, and then one of them failed.
      guard_lost_ = false;
    }
    throw;
  }
  if (status == backend::CommitStatus::committed) {
    state_ = State::committed;
    return;
  }
  roll_back();
  throw transaction_lost(false);
}

void GuardedTransaction::roll_back() noexcept {
  if (state_ != State::open) return;
  state_ = State::rolled_back;
  const bool ended = has_ended();
  const bool foreign_commit = session_.may_have_foreign_commit();
  const backend::RollbackStatus status = session_.roll_back();
  session_usable_ = status != backend::RollbackStatus::failed;
  if (status == backend::RollbackStatus::ours) return;
  guard_lost_ = status == backend::RollbackStatus::not_ours && !claims_.empty();
  foreign_commit_ = foreign_commit_ || (foreign_commit && (guard_lost_ || ended));
  unconfirmed_claims_ = std::move(claims_);
}

Failure GuardedTransaction::explain(const Failure& failure) const noexcept {
  const bool refused =
      is_refused_commit(session_, failure) || (failure.error_class() == backend::ErrorClass::read_only && guard_lost_);
  return refused ? Failure(std::make_exception_ptr(transaction_lost(false))) : failure;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
