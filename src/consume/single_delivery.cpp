#include "consume/single_delivery.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "base/interruptible_sleep.hpp"
#include "base/reentrancy_check.hpp"
#include "consume/run_handler.hpp"
#include "message/key.hpp"
#include "pool/with_session.hpp"
#include "tables/conflicting_message_table.hpp"
#include "tables/lease_table.hpp"
#include "telemetry/listeners.hpp"
#include "types/handler_error.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

Result SingleDelivery::consume() {
  return run_in_scope(context_.options.listeners, scope(ScopeKind::consume), [&] { return consume_in_scope(); });
}

Result SingleDelivery::consume_in_scope() {
  try {
    check_message(message_);
    ReentrancyCheck::refuse_nested(context_.source.identity());
    context_.refuse_when_stopped();
    const bool known = message_.valid_for.count() == 0 &&
                       context_.recent.knows(message_.business_key, hash_.bytes(), context_.losses());
    Result result = known ? Result{.outcome = Outcome::already_consumed} : consume_within_claim_wait();
    if (taken_over_) notify({.type = EventType::lease_taken_over});
    notify({.type = event_for(result.outcome), .age = result.age});
    context_.duplicates.count({&result, 1});
    return result;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    notify({.type = parked_ ? EventType::parked : EventType::failed, .error = error});
    if (!parked_) throw;
    return {.outcome = Outcome::parked, .error = original_error(error)};
  }
}

/// Consumes within the time of `claim_wait`. While it waits for another delivery of the key, it holds no connection.
Result SingleDelivery::consume_within_claim_wait() {
  const auto wait = context_.options.claim_wait;
  if (!wait) return consume_with_retries();
  constexpr std::chrono::milliseconds first_pause{5};
  constexpr std::chrono::milliseconds longest_pause{100};
  constexpr std::chrono::days longest_wait(36'500);  // a longer one does not fit into the clock
  const auto give_up = KeysInFlight::Clock::now() + std::min<std::chrono::milliseconds>(*wait, longest_wait);
  for (auto pause = first_pause;; pause = std::min(pause * 2, longest_pause)) {
    {
      const auto turn = context_.in_flight.enter(message_.business_key, give_up, context_.options.stop);
      if (!turn) return {.outcome = Outcome::in_progress};
      Result result = consume_with_retries();
      if (result.outcome != Outcome::in_progress) return result;
      if (KeysInFlight::Clock::now() + pause >= give_up) return result;
    }
    if (!sleep_for(pause, context_.options.stop)) return {.outcome = Outcome::in_progress};
  }
}

Result SingleDelivery::consume_with_retries() {
  for (;;) {
    Failure failure;
    try {
      std::optional<Result> result =
          run_in_scope(context_.options.listeners, scope(ScopeKind::attempt), [&] { return run(); });
      notify_if_torn();
      if (!result) continue;
      return std::move(*result);
    } catch (...) {
      failure = Failure::current();
    }
    notify_if_torn();
    if (auto refusal = refused_by(failure.error()); refusal && !torn_) {
      stored_ = std::move(refusal);
      refused_ = true;
      continue;
    }
    if (may_be_left_by_another(failure)) continue;
    const auto backoff = schedule_.next_backoff();
    const bool transient = failure.is_transient() || (handler_ran_ && context_.is_declared_transient(failure.error()));
    if (transient && !torn_ && schedule_.may_retry(backoff) && context_.can_go_on_after(failure)) {
      if (attempt_.begun()) attempt_.remove_marker();  // the run could not remove the marker on its own session
      notify({.type = EventType::retry, .error = failure.error(), .backoff = backoff});
      if (schedule_.wait(backoff, context_.options.stop)) continue;
    }
    recovery_.resolve_on_new_session(context_.source);
    record_torn();
    notify_if_torn();
    if (!torn_ && handler_ran_) {
      if (auto postponed = postponed_by(failure.error())) return std::move(*postponed);
    }
    if (handler_ran_ && context_.record_failure(message_, failure, counting_, parked_)) attempt_.on_marker_removed();
    failure.rethrow();
  }
}

/// Whether an earlier handler may have left something on the connection that made our own statements fail. The pool has
/// closed or reset the connection since then, so one more run shows it.
bool SingleDelivery::may_be_left_by_another(const Failure& failure) noexcept {
  const bool of_our_sql = (failure.is_of_database() && !failure.is_transient() && !failure.is_of_environment()) ||
                          failure.is(ErrorCode::unknown_state);
  const bool may_be = of_our_sql && !handler_ran_ && !ran_again_ && context_.source.pool() != nullptr;
  ran_again_ = ran_again_ || may_be;
  return may_be;
}

/// Runs the whole transaction once. If it throws, it has rolled back and given its session back. Returns none if it
/// must run again at once: the claim has waited so long that the key can have been erased.
std::optional<Result> SingleDelivery::run() {
  handler_ran_ = false;
  const ErasedKeys::Reading erased = read_erased();
  if (auto result = erased->find(context_.consumer, message_)) {
    context_.source.refuse_other_inbox();
    recovery_.resolve_on_new_session(context_.source);
    record_torn();
    return result;
  }
  if (context_.options.count_starts && !attempt_.begun() && !refused_) {
    if (auto given_up = start_attempt()) return *given_up;
  }
  const ReentrancyCheck not_nested(context_.source.identity());
  const std::uint64_t losses = context_.losses();
  const auto remember = [&](std::string_view content_hash) {
    context_.recent.remember(message_.business_key, content_hash, losses, context_.losses());
  };
  SessionHandle session = context_.source.borrow(context_.options.stop, SettingsCheck::at_begin);
  context_.backlog.resolve(session.backend());
  recovery_.resolve(session.backend());
  record_torn();
  GuardedTransaction transaction(session.backend(), recovery_.in_doubt());
  try {
    if (std::optional<backend::ClaimedRow> existing =
            transaction.claim(context_.consumer, message_, hash_.bytes(), !context_.options.claim_wait)) {
      transaction.roll_back();
      if (existing->state == RowState::consumed) {
        session.backend().wait_until_durable(context_.consumer, message_.business_key);
      }
      if (transaction.session_usable()) session.mark_clean();
      Result result = answer(*existing, session);
      if (result.outcome == Outcome::conflict) {
        record_conflict(session.backend(), context_.consumer, message_, hash_.bytes(), context_.options.max_conflicts);
      }
      if (result.outcome == Outcome::already_consumed && !result.stored) remember(existing->content_hash);
      return result;
    }
    if (!erased->is_current()) {
      transaction.roll_back();
      if (transaction.session_usable()) session.mark_clean();
      return std::nullopt;
    }
    if (!refused_) {
      Delivery delivery(message_, schedule_.attempt(), context_.options.stop, index_);
      handler_ran_ = true;
      run_handler(context_, handler_, session, delivery);
      stored_ = delivery.stored();
    }
    if (attempt_.begun()) transaction.add_write(attempt_.removal_sql(session.backend()));
    if (stored_) transaction.set_result(0, *stored_);
    transaction.commit();
    if (!stored_) remember(hash_.bytes());
    session.mark_clean();
    if (attempt_.begun()) attempt_.on_marker_removed();
    taken_over_ = !transaction.taken_over().empty();
    return Result{.outcome = Outcome::consumed, .stored = stored_, .refused = refused_};
  } catch (...) {
    const Failure failure = recovery_.abort_and_resolve(transaction, session, Failure::current());
    if (transaction.session_usable() && !failure.is_fatal_to_session()) remove_marker(session);
    record_torn();
    const bool is_answer =
        failure.is(ErrorCode::transaction_lost) || postponed_by(failure.error()) || refused_by(failure.error());
    if (torn_ && is_answer) throw transaction_lost(true);
    failure.rethrow();
  }
}

ErasedKeys::Reading SingleDelivery::read_erased() {
  const ReentrancyCheck not_nested(context_.source.identity());
  return context_.read_erased();
}

/// Whether the claim may take the row over, perhaps after a wait: it is a lease, or it is older than `valid_for` soon.
bool SingleDelivery::may_be_taken_over(const backend::ClaimedRow& row) const {
  constexpr std::chrono::minutes longest_wait(1);
  if (row.state == RowState::consuming) return true;
  return row.state == RowState::consumed && message_.valid_for.count() > 0 &&
         row.age + longest_wait >= message_.valid_for;
}

/// Writes the marker before the handler runs. A suspect runs exclusively. If the message has crashed its process too
/// often, it is parked, and the function returns that result.
std::optional<Result> SingleDelivery::start_attempt() {
  const ReentrancyCheck not_nested(context_.source.identity());
  {
    SessionHandle session = context_.source.borrow(context_.options.stop);
    const auto row = LeaseTable(session.backend(), context_.consumer, message_).find();
    session.mark_clean();
    if (row && !may_be_taken_over(*row)) return std::nullopt;  // the claim reports what the row means
    if (attempt_.has_foreign_marker(session.backend())) {
      if (is_held(session)) return std::nullopt;
      if (attempt_.counts_crash(session.backend(), AttemptMarker::CleanupOrder::key_first) &&
          context_.park_if_exhausted(session.backend(), message_, attempt_.attempts())) {
        return Result{.outcome = Outcome::parked};
      }
    }
  }
  attempt_.enter();
  with_session(context_.source, context_.options.stop, [&](backend::Session& session) { attempt_.begin(session); });
  return std::nullopt;
}

/// Removes the marker after the rollback, on the session at hand. Waiting for another session would leave the marker of
/// an attempt that has ended.
void SingleDelivery::remove_marker(SessionHandle& session) noexcept {
  if (!attempt_.begun()) return;
  try {
    attempt_.remove_marker(session.backend());
  } catch (...) {  // the marker is removed later, on another session
    session.discard();
  }
}

/// Whether the key has a row that is not an expired lease. If another delivery of the key is running, it waits for the
/// end of that delivery. With `claim_wait` it does not wait, and returns true.
bool SingleDelivery::is_held(SessionHandle& session) {
  GuardedTransaction probe(session.backend());
  try {
    const bool held = probe.claim(context_.consumer, message_, hash_.bytes(), !context_.options.claim_wait).has_value();
    probe.roll_back();
    if (!probe.session_usable()) session.discard();
    return held;
  } catch (...) {
    probe.roll_back();
    session.discard();
    throw;
  }
}

Result SingleDelivery::answer(backend::ClaimedRow& row, SessionHandle& session) {
  // The server may have finished the handler's own COMMIT only after the search for the claim.
  if (recovery_.is_unconfirmed(message_.business_key, row)) {
    recovery_.resolve(session.backend());
    record_torn();
    if (torn_) return {.outcome = Outcome::parked};
  }
  if (recovery_.record_torn(message_.business_key, row)) {
    record_torn();
    return {.outcome = Outcome::parked};
  }
  const bool ours = recovery_.is_ours(row);
  Result result = result_for(row, hash_.bytes());
  // An earlier run of this call committed the claim, and the reply was lost.
  if (ours && result.outcome == Outcome::already_consumed) {
    return {.outcome = Outcome::consumed, .stored = stored_, .refused = refused_};
  }
  return result;
}

void SingleDelivery::record_torn() {
  if (recovery_.take_torn().empty()) return;
  torn_ = true;
  context_.recent.forget(message_.business_key);
}

/// Notifies the listeners. Call it after the session was given back: a listener may need a session.
void SingleDelivery::notify_if_torn() noexcept {
  context_.notify_backlog();
  if (!torn_ || torn_notified_) return;
  torn_notified_ = true;
  notify({.type = EventType::torn});
}

void SingleDelivery::notify(Event event) const noexcept {
  event.business_key = message_.business_key;
  event.message_id = message_.message_id;
  event.attempt = schedule_.attempt();
  event.duration = schedule_.elapsed();
  context_.notify(event);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
