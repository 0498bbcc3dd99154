#include <txinbox/tx_consumer.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <soci/error.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "guarded_transaction.hpp"
#include "key.hpp"
#include "pool_state.hpp"
#include "retry_schedule.hpp"
#include "row_state.hpp"
#include "session_source.hpp"

namespace txinbox::inline TXINBOX_ABI {
namespace {

/// Refuses a `consume` inside a handler of the same source: it would wait for the connection or the
/// key that its own caller holds.
class NestingCheck {
 public:
  explicit NestingCheck(const void* source) {
    if (std::find(active.begin(), active.end(), source) != active.end()) {
      throw Error(ErrorCode::nested_consume,
                  "consume was called inside a handler on the same pool or session; do the inner work with the "
                  "handler's own session, or consume the inner message afterwards");
    }
    active.push_back(source);
  }
  ~NestingCheck() { active.pop_back(); }
  NestingCheck(const NestingCheck&) = delete;
  NestingCheck& operator=(const NestingCheck&) = delete;

 private:
  static thread_local std::vector<const void*> active;
};

thread_local std::vector<const void*> NestingCheck::active;

Outcome outcome_for(Claim claim) {
  switch (claim) {
    case Claim::claimed:
      return Outcome::consumed;
    case Claim::already_consumed:
      return Outcome::already_consumed;
    case Claim::conflict:
      return Outcome::conflict;
    case Claim::in_progress:
      return Outcome::in_progress;
    case Claim::parked:
      return Outcome::parked;
  }
  return Outcome::in_progress;
}

EventType event_for(Outcome outcome) {
  switch (outcome) {
    case Outcome::consumed:
      return EventType::consumed;
    case Outcome::already_consumed:
      return EventType::already_consumed;
    case Outcome::in_progress:
      return EventType::in_progress;
    case Outcome::conflict:
    case Outcome::parked:
      return EventType::parked;
    case Outcome::failed:
    case Outcome::not_run:
      return EventType::failed;
  }
  return EventType::failed;
}

bool is_fatal_to_session(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const soci::soci_error& e) {
    return backend::is_fatal_to_session(backend::classify(e));
  } catch (...) {
    return false;
  }
}

}  // namespace

class TxConsumer::Impl {
 public:
  template <class Source>
  Impl(Source&& source, std::string consumer, TxConsumerOptions options)
      : source_(std::forward<Source>(source)), consumer_(std::move(consumer)), options_(std::move(options)) {
    detail::check_consumer(consumer_);
    detail::check(options_.retry);
  }

  Result consume(const Message& message, const Handler& handler);

 private:
  /// What one `consume` call remembers from run to run.
  struct Call {
    const Message& message;
    const Handler& handler;
    detail::RetrySchedule schedule;
    std::vector<detail::OwnClaim> unproven = {};  ///< Claims of earlier runs to mark if they are there.
    std::vector<std::string> in_doubt = {};       ///< Tokens of runs whose COMMIT had no clear answer.
    std::optional<std::string> stored = {};       ///< What the last run's handler stored.
    bool torn = false;
    bool torn_told = false;
  };

  Result run(Call&) const;
  Result result_of_existing(const Call&, backend::ExistingRow&) const;
  void mark(backend::Session&, Call&) const;
  void mark_elsewhere(Call&) const noexcept;
  void tell_if_torn(Call&) const noexcept;
  void tell(const Call&, Event) const noexcept;

  mutable detail::SessionSource source_;
  const std::string consumer_;
  const TxConsumerOptions options_;
};

Result TxConsumer::Impl::consume(const Message& message, const Handler& handler) {
  Call call{message, handler, detail::RetrySchedule(options_.retry)};
  try {
    detail::check_message(message);
    if (options_.stop.stop_requested()) {
      throw Error(ErrorCode::stopped, "the consumer's stop token is set; no new message is begun");
    }
  } catch (...) {
    tell(call, {.type = EventType::failed, .error = std::current_exception()});
    throw;
  }
  for (;;) {
    std::exception_ptr error;
    try {
      Result result = run(call);
      tell_if_torn(call);
      tell(call, {.type = event_for(result.outcome)});
      return result;
    } catch (...) {
      error = std::current_exception();
    }
    tell_if_torn(call);
    const auto backoff = call.schedule.next_backoff();
    const bool again = is_transient(error) && !call.torn && call.schedule.may_retry(backoff) &&
                       (source_.reconnects() || !is_fatal_to_session(error));
    if (again) {
      tell(call, {.type = EventType::retry, .error = error, .backoff = backoff});
      if (call.schedule.wait(backoff, options_.stop)) continue;
    }
    mark_elsewhere(call);
    tell_if_torn(call);
    tell(call, {.type = EventType::failed, .error = error});
    std::rethrow_exception(error);
  }
}

/// One run of the whole transaction. What it throws has been rolled back, and its session has been
/// given back.
Result TxConsumer::Impl::run(Call& call) const {
  const NestingCheck not_nested(source_.identity());
  detail::BorrowedSession session = source_.borrow(options_.stop);
  mark(session.backend(), call);
  detail::GuardedTransaction transaction(session.backend());
  try {
    if (backend::ExistingRow* existing = transaction.claim(consumer_, call.message)) {
      transaction.roll_back();
      if (transaction.session_usable()) session.is_clean();
      // The handler's own COMMIT was still on its way when the claim was looked for.
      if (std::ranges::any_of(call.unproven, [&](const auto& c) { return c.token.hex() == existing->token_hex; })) {
        mark(session.backend(), call);
        if (call.torn) return {.outcome = Outcome::parked};
      }
      return result_of_existing(call, *existing);
    }
    Delivery delivery(call.message, call.schedule.attempt(), options_.stop);
    call.handler(session.sql(), delivery);
    call.stored = delivery.stored();
    transaction.commit(call.stored);
    session.is_clean();
    return {.outcome = Outcome::consumed, .stored = call.stored};
  } catch (...) {
    transaction.roll_back();
    if (transaction.commit_in_doubt()) call.in_doubt.push_back(transaction.token().hex());
    std::ranges::move(transaction.take_unproven(), std::back_inserter(call.unproven));
    if (!transaction.session_usable() || is_fatal_to_session(std::current_exception())) {
      session.discard();
    } else {
      try {
        mark(session.backend(), call);
        session.is_clean();
      } catch (...) {  // NOLINT(bugprone-empty-catch): tried again on another session
      }
    }
    if (call.torn && detail::is_transaction_lost(std::current_exception())) detail::throw_transaction_lost(true);
    throw;
  }
}

Result TxConsumer::Impl::result_of_existing(const Call& call, backend::ExistingRow& row) const {
  const bool ours = std::find(call.in_doubt.begin(), call.in_doubt.end(), row.token_hex) != call.in_doubt.end();
  const Claim claim = detail::claim_for_state(row.state);
  // A commit of this very call whose reply was lost.
  if (ours && claim == Claim::already_consumed) return {.outcome = Outcome::consumed, .stored = call.stored};
  return {.outcome = outcome_for(claim), .stored = std::move(row.result), .retry_after = row.lease_remaining};
}

/// Marks what earlier runs' handlers committed themselves; such a message is not run again.
void TxConsumer::Impl::mark(backend::Session& session, Call& call) const {
  if (call.unproven.empty()) return;
  if (detail::mark_torn(session, call.unproven) == 0) return;  // not there, or not yet
  call.unproven.clear();
  call.torn = true;
}

/// The last chance to mark a claim whose session was lost: on another one. If that fails too, the
/// error on the way is what counts.
void TxConsumer::Impl::mark_elsewhere(Call& call) const noexcept {
  if (call.unproven.empty() || !source_.reconnects()) return;
  try {
    detail::BorrowedSession session = source_.borrow({});
    mark(session.backend(), call);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

/// Once the session was given back: the observer may want one.
void TxConsumer::Impl::tell_if_torn(Call& call) const noexcept {
  if (!call.torn || call.torn_told) return;
  call.torn_told = true;
  tell(call, {.type = EventType::torn});
}

void TxConsumer::Impl::tell(const Call& call, Event event) const noexcept {
  if (!options_.observer) return;
  event.consumer = consumer_;
  event.business_key = call.message.business_key;
  event.attempt = call.schedule.attempt();
  event.duration = call.schedule.elapsed();
  try {
    options_.observer(event);
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
}

TxConsumer::TxConsumer(Pool& pool, std::string consumer, TxConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::PoolAccess::state(pool), std::move(consumer), std::move(options))) {}

TxConsumer::TxConsumer(soci::session& session, std::string consumer, TxConsumerOptions options)
    : impl_(std::make_unique<Impl>(session, std::move(consumer), std::move(options))) {}

TxConsumer::TxConsumer(TxConsumer&&) noexcept = default;
TxConsumer& TxConsumer::operator=(TxConsumer&&) noexcept = default;
TxConsumer::~TxConsumer() = default;

Result TxConsumer::consume(const Message& message, const Handler& handler) { return impl_->consume(message, handler); }

}  // namespace txinbox::inline TXINBOX_ABI
