#include "lease/lease_delivery.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/error_classification.hpp"
#include "base/interruptible_sleep.hpp"
#include "base/reentrancy_check.hpp"
#include "message/key.hpp"
#include "pool/with_session.hpp"
#include "tables/conflicting_message_table.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using std::chrono::milliseconds;

namespace {

Error lease_is_too_short(milliseconds lease) {
  return {
      ErrorCode::lease_lost,
      fmt::format("the lease of {} ms is over before its handler can begin: the round trips to the database take as "
                  "long; let LeaseOptions::lease be longer",
                  lease.count())};
}

}  // namespace

Result LeaseDelivery::consume() {
  try {
    check_message(message_);
    ReentrancyCheck::refuse_nested(context_.source.identity());
    context_.refuse_when_stopped();
    Answer answer = claim_or_wait();
    if (const auto* granted = std::get_if<Grant>(&answer)) {
      if (taken_over_) notify({.type = EventType::lease_taken_over});
      answer = run(*granted);
    }
    auto& result = std::get<Result>(answer);
    notify({.type = event_for(result.outcome), .age = result.age});
    context_.duplicates.count({&result, 1});
    return std::move(result);
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    if (auto postponed = handler_ran_ ? postponed_by(error) : std::nullopt) {
      notify({.type = EventType::postponed, .error = error});
      return std::move(*postponed);
    }
    notify({.type = EventType::failed, .error = error});
    if (!parked_) throw;
    notify({.type = EventType::parked});
    return {.outcome = Outcome::parked, .error = error};
  }
}

template <class Step>
auto LeaseDelivery::with_retries(const std::stop_token& stop, const Step& step) {
  RetrySchedule schedule(context_.options.retry);
  for (;;) {
    std::exception_ptr error;
    try {
      const ReentrancyCheck not_nested(context_.source.identity());
      return with_session(context_.source, stop, step);
    } catch (...) {
      error = std::current_exception();
    }
    const auto backoff = schedule.next_backoff();
    if (!is_transient(error) || !schedule.may_retry(backoff)) std::rethrow_exception(error);
    notify({.type = EventType::retry, .attempt = schedule.attempt(), .error = error, .backoff = backoff});
    if (!schedule.wait(backoff, context_.options.stop)) std::rethrow_exception(error);
  }
}

/// Claims the key. While another worker holds the lease, tries again for up to `LeaseOptions::wait`.
LeaseDelivery::Answer LeaseDelivery::claim_or_wait() {
  constexpr milliseconds longest_pause{500};
  milliseconds pause{10};
  for (;;) {
    Answer answer = with_retries(context_.options.stop, [&](backend::Session& session) { return claim(session); });
    const auto* result = std::get_if<Result>(&answer);
    if (result == nullptr || result->outcome != Outcome::in_progress) return answer;
    const auto left = options_.wait - std::chrono::floor<milliseconds>(whole_.elapsed());
    if (left <= milliseconds::zero()) return answer;
    const auto wait = std::min({pause, left, std::max(result->retry_after, milliseconds(1))});
    if (!sleep_for(wait, context_.options.stop)) return answer;
    pause = std::min(pause * 2, longest_pause);
  }
}

LeaseDelivery::Answer LeaseDelivery::claim(backend::Session& session) {
  // Another worker can change the row between two statements. Then try again, but not forever.
  constexpr int tries = 20;
  constexpr int tries_to_be_in_time = 3;
  int late = 0;
  for (int i = 0; i < tries; ++i) {
    auto answer = try_claim(session);
    if (!answer) continue;
    const auto* granted = std::get_if<Grant>(&*answer);
    if (granted == nullptr || ActiveLease::Clock::now() < granted->expires_at) return std::move(*answer);
    if (++late == tries_to_be_in_time) throw lease_is_too_short(options_.lease);
  }
  throw Error(ErrorCode::unknown_state,
              "the row of this key changes again and again while it is claimed; look for who removes it");
}

/// Returns none if the row must be read again. If the reply to a claim was lost, the row shows whether it is ours.
std::optional<LeaseDelivery::Answer> LeaseDelivery::try_claim(backend::Session& session) {
  const LeaseTable table(session, context_.consumer, message_);
  const auto sent = ActiveLease::Clock::now();
  std::optional<backend::ClaimedRow> row;
  if (looks_first_ || session.looks_first()) row = table.find();
  if (!row) {
    looks_first_ = true;
    const auto fence = table.insert(owner_, hash_.bytes(), options_.lease);
    session.note_claim(!fence);
    if (!fence) return std::nullopt;
    return Grant{*fence, sent + options_.lease};
  }
  if (row->state != RowState::consuming) return answer(session, *row);
  const auto remaining = row->lease_remaining.value_or(milliseconds(1));
  const bool ours = row->token == owner_.token.bytes();
  if (ours && remaining > milliseconds::zero()) return Grant{row->lease_fence, sent + remaining};
  if (remaining > milliseconds::zero() || is_conflict(row->content_hash, hash_.bytes())) return answer(session, *row);
  const auto asked = ActiveLease::Clock::now();
  const auto fence = table.take_over(owner_, hash_.bytes(), options_.lease, *row);
  if (!fence) return std::nullopt;
  taken_over_ = taken_over_ || !ours;
  return Grant{*fence, asked + options_.lease};
}

Result LeaseDelivery::answer(backend::Session& session, backend::ClaimedRow& row) {
  Result result = result_for(row, hash_.bytes());
  if (result.outcome == Outcome::conflict) {
    record_conflict(session, context_.consumer, message_, hash_.bytes());
  } else if (result.outcome == Outcome::already_consumed) {
    session.wait_until_durable(context_.consumer, message_.business_key);
  }
  return result;
}

Result LeaseDelivery::run(const Grant& granted) {
  ActiveLease held(context_, owner_, message_, options_.lease, granted.fence, granted.expires_at);
  if (options_.count_starts && !start_attempt(held)) return {.outcome = Outcome::parked};
  try {
    begin_handler(held);
    handler_ran_ = true;
    handler_(held.lease());
    held.stop_heartbeat();
  } catch (...) {
    held.stop_heartbeat();
    give_back(held, std::current_exception());
    throw;
  }
  const auto& stored = held.lease().delivery().stored();
  complete(held, stored);
  return {.outcome = Outcome::consumed, .stored = stored};
}

/// Starts the timer and the heartbeat. If the lease has expired by now, renews it first.
void LeaseDelivery::begin_handler(ActiveLease& held) {
  if (held.is_over()) held.renew();
  if (held.is_over()) throw lease_is_too_short(options_.lease);
  held.start_timer(timer_);
  if (options_.heartbeat > milliseconds::zero()) held.start_heartbeat(options_.heartbeat);
}

/// Writes the marker of the attempt. We hold the lease, so a marker that remains is of an attempt that crashed or
/// outlived its lease. Returns false if the message has crashed its process too often, and was parked.
bool LeaseDelivery::start_attempt(ActiveLease& held) {
  const bool died = with_retries(context_.options.stop, [&](backend::Session& session) {
    return attempt_.has_foreign_marker(session) && attempt_.counts_crash(session, AttemptMarker::Order::mark_first);
  });
  if (died && context_.exceeds_max_attempts(attempt_.attempts())) {
    return !with_retries(context_.options.stop, [&](backend::Session& session) {
      return LeaseTable(session, context_.consumer, message_).park(owner_, held.fence());
    });
  }
  enter(held);
  with_retries(context_.options.stop, [&](backend::Session& session) {
    attempt_.begin(session);
    return true;
  });
  return true;
}

void LeaseDelivery::enter(ActiveLease& held) {
  bool waited = false;
  try {
    waited = attempt_.enter();
  } catch (...) {
    give_back(held, std::current_exception());
    throw;
  }
  if (waited) held.renew();
}

/// Completes the lease. The reply to an earlier try may be lost: if the row is consumed with our token, we completed
/// it.
void LeaseDelivery::complete(const ActiveLease& held, const std::optional<std::string>& result) {
  const bool completed = with_retries({}, [&](backend::Session& session) {
    const LeaseTable table(session, context_.consumer, message_);
    if (table.complete(owner_, held.fence(), result)) return true;
    const auto row = table.find();
    const bool ours = row && row->state == RowState::consumed && row->token == owner_.token.bytes() &&
                      row->lease_fence == held.fence();
    return ours && session.wait_until_durable(context_.consumer, message_.business_key);
  });
  if (!completed) throw lease_lost();
}

/// Counts the failure and removes the marker. Then parks the message, or releases the lease so that it can be delivered
/// again at once. If this fails, the lease expires by itself.
void LeaseDelivery::give_back(const ActiveLease& held, const std::exception_ptr& error) noexcept {
  const bool counts = context_.counts(error);
  try {
    SessionHandle session = context_.source.borrow({});
    const LeaseTable table(session.backend(), context_.consumer, message_);
    try {
      const int attempts =
          counts ? FailureRecord(session.backend(), context_.consumer).count(message_, error, options_.keep_error_text)
                 : 0;
      if (counts && attempt_.begun()) attempt_.ended();
      if (attempt_.begun()) attempt_.strike_out(session.backend());
      parked_ =
          counts && (is_rejected(error) || context_.exceeds_max_attempts(attempts)) && table.park(owner_, held.fence());
    } catch (...) {
      if (is_fatal_to_session(std::current_exception())) throw;
    }
    if (!parked_) table.release(owner_, held.fence());
    session.mark_clean();
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
}

void LeaseDelivery::notify(Event event) const noexcept {
  event.business_key = message_.business_key;
  event.message_id = message_.message_id;
  event.duration = whole_.elapsed();
  context_.notify(event);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
