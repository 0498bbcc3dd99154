#include "consume/batch_delivery.hpp"

#include <algorithm>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/error_class.hpp"
#include "backend/failure.hpp"
#include "base/reentrancy_check.hpp"
#include "consume/consume_sequentially.hpp"
#include "consume/run_handler.hpp"
#include "message/key.hpp"
#include "telemetry/listeners.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// Whether a transient error comes from other transactions that want the same rows. Then fewer messages in one
/// transaction can help. They cannot help if no connection is free, or if the database is unavailable.
bool is_contention(const Failure& failure) noexcept {
  return !failure.is(ErrorCode::acquire_timeout) && !failure.is_fatal_to_session();
}

/// Returns the failure to report for a torn claim: the handler's own error, or else transaction_lost.
Failure failure_of_torn_claim(const Failure& failure) noexcept {
  if (failure && !failure.is(ErrorCode::transaction_lost) && !postponed_by(failure.error())) return failure;
  return Failure(std::make_exception_ptr(transaction_lost(true)));
}

}  // namespace

BatchDelivery::BatchDelivery(ConsumerContext& context, std::span<const Message> messages,
                             const HandlersOfBatch& handlers, OnFailure on_failure, Counting counting)
    : context_(context),
      messages_(messages),
      handlers_(handlers),
      on_failure_(on_failure),
      counting_(counting),
      schedule_(context.options.retry),
      part_size_(messages.size()),
      end_(messages.size()) {}

BatchResults BatchDelivery::consume() {
  if (messages_.empty()) return {};
  return run_in_scope(context_.options.listeners, context_.scope(ScopeKind::consume, messages_),
                      [&] { return consume_in_scope(); });
}

BatchResults BatchDelivery::consume_in_scope() {
  try {
    ReentrancyCheck::refuse_nested(context_.source.identity());
    context_.refuse_when_stopped();
    prepare_items();
    for (Part part = next_part(); !part.empty(); part = next_part()) {
      const RunOutcome outcome = run(part);
      if (!outcome.failure && outcome.end == BatchRun::End::committed) {
        after_commit(part);
      } else if (progress_) {
        schedule_.start_over();
      } else if (outcome.failure) {
        after_failure(part, outcome.failure);
      } else {
        prepare_rerun(part);
      }
      record_failures();
    }
  } catch (...) {
    context_.notify({.type = EventType::failed, .duration = schedule_.elapsed(), .error = std::current_exception()});
    throw;  // no handler has run yet
  }
  resolve_claims();
  record_failures();
  context_.backlog.add(recovery_);
  return finish();
}

/// Gives results to the messages that need no database: invalid messages, and keys that are known as consumed.
void BatchDelivery::prepare_items() {
  const std::uint64_t losses = context_.losses();
  items_.reserve(messages_.size());
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    BatchItem& item = items_.emplace_back(BatchItem{&message, i, ContentHash(message.content)});
    try {
      check_message(message);
    } catch (...) {
      fail(item, Failure::current());
      continue;
    }
    if (message.valid_for.count() == 0 && context_.recent.knows(message.business_key, item.hash.bytes(), losses)) {
      item.result = {.outcome = Outcome::already_consumed};
    }
  }
}

BatchDelivery::Part BatchDelivery::next_part() {
  Part part;
  if (is_finished()) return part;
  while (begin_ < end_ && items_[begin_].result) ++begin_;
  for (std::size_t i = begin_; i < end_ && part.size() < part_size_; ++i) {
    if (!items_[i].result) part.push_back(&items_[i]);
  }
  return part;
}

/// Runs the part once on a borrowed session, and gives the session back.
BatchDelivery::RunOutcome BatchDelivery::run(const Part& part) {
  progress_ = false;
  RunOutcome outcome;
  const Scope attempt = context_.scope(ScopeKind::attempt, messages_, ++attempts_);
  begin_scope(context_.options.listeners, attempt);
  try {
    const ReentrancyCheck not_nested(context_.source.identity());
    const std::uint64_t losses = context_.losses();
    const ErasedKeys::Reading erased = context_.read_erased();
    if (answer_erased(part, *erased)) {
      outcome.end = BatchRun::End::run_again;
    } else {
      SessionHandle session = context_.source.borrow(context_.options.stop, SettingsCheck::at_begin);
      const bool borrowed_before = std::exchange(session_borrowed_, true);
      outcome = run_on(session, part, *erased, losses);
      // The statement that begins the transaction can find what `borrow` finds otherwise.
      const bool is_of_session =
          outcome.failure.is(ErrorCode::unsafe_connection) || outcome.failure.is(ErrorCode::transaction_open);
      const bool is_refused =
          is_of_session && std::ranges::none_of(part, [](const BatchItem* item) { return item->runs > 0; });
      if (is_refused) session_borrowed_ = borrowed_before;
    }
  } catch (...) {
    outcome.failure = Failure::current();
  }
  end_scope(context_.options.listeners, attempt, outcome.failure.error());
  // Notify the listeners only now: one may need the session that was given back.
  context_.notify_backlog();
  fail_torn_items(outcome.failed_item);
  // Without savepoints it is not certain which handler has lost the transaction.
  if (outcome.failed_item && use_savepoints_ && !outcome.failed_item->item->result) {
    fail(*outcome.failed_item->item, outcome.failed_item->failure);
  }
  return outcome;
}

/// Gives results to the messages that were erased. Returns whether there was one: the part must then be made again.
bool BatchDelivery::answer_erased(const Part& part, const ErasedKeyReading& erased) {
  for (BatchItem* const item : part) {
    auto answer = erased.find(context_.consumer, *item->message);
    if (!answer) continue;
    if (!progress_) context_.source.refuse_other_inbox();
    item->result = std::move(answer);
    progress_ = true;
  }
  return progress_;
}

BatchDelivery::RunOutcome BatchDelivery::run_on(SessionHandle& session, const Part& part,
                                                const ErasedKeyReading& erased, std::uint64_t losses) {
  context_.backlog.resolve(session.backend());
  recovery_.resolve(session.backend());
  GuardedTransaction transaction(session.backend(), recovery_.in_doubt());
  BatchRun run(context_, handlers_, messages_, recovery_, session, transaction, part, erased);
  RunOutcome outcome;
  try {
    const bool keeps_refusals =
        std::ranges::any_of(part, [](const BatchItem* item) { return item->refusal.has_value(); });
    outcome.end = use_savepoints_ || keeps_refusals ? run.run_with_savepoints(on_failure_)
                                                    : run.run_without_savepoints(on_failure_);
  } catch (...) {
    outcome.failure = recovery_.abort_and_resolve(transaction, session, Failure::current());
    outcome.failed_item = run.failed_item();
    return outcome;
  }
  if (outcome.end == BatchRun::End::run_again) {
    (void)recovery_.abort_and_resolve(transaction, session, Failure());
    if (run.last_item() != nullptr) end_ = run.last_item()->index + 1;
    part_size_ = std::min(part_size_, run.most_items());
    if (run.needs_reading()) part_size_ = std::max<std::size_t>(1, part.size() / 2);  // its claims take long
    progress_ = progress_ || run.has_new_refusal() || run.needs_reading();
    return outcome;
  }
  run.record_conflicts();
  run.publish(context_.recent, losses, context_.losses());
  for (const std::string& key : transaction.taken_over()) taken_over_.push_back(key);
  return outcome;
}

/// Fails the deliveries whose claims were marked torn. Later deliveries of these messages are parked.
void BatchDelivery::fail_torn_items(const std::optional<FailedItem>& failed) {
  for (const std::string& key : recovery_.take_torn()) {
    context_.recent.forget(key);
    const auto torn = std::ranges::find_if(
        items_, [&](const BatchItem& item) { return !item.result && item.message->business_key == key; });
    if (torn != items_.end()) {
      fail(*torn, failure_of_torn_claim(failed && &*torn == failed->item ? failed->failure : Failure()));
    }
    context_.notify({.type = EventType::torn, .business_key = key, .duration = schedule_.elapsed()});
  }
}

void BatchDelivery::after_commit(const Part& part) {
  schedule_.start_over();
  // A run with savepoints may have ended before a copy of a message that failed. The next run goes on from there.
  use_savepoints_ = std::ranges::any_of(part, [](const BatchItem* item) { return !item->result; });
  part_size_ = std::min(part_size_ * 2, items_.size());
  for (std::size_t i = begin_; i < end_; ++i) {
    const auto& result = items_[i].result;
    if (result && ends_batch(*result, on_failure_)) end_ = i;
  }
}

/// Whether a run with a savepoint for each message can help: then each handler can fail alone, and a refusal can be
/// stored.
bool BatchDelivery::savepoints_help(const Part& part, const Failure& failure) const {
  return part.size() == 1 ? refused_by(failure.error()).has_value()
                          : handlers_.at_once == nullptr || handlers_.one_isolates;
}

void BatchDelivery::after_failure(const Part& part, const Failure& failure) {
  if (failure.is_transient()) {
    after_transient_error(part, failure);
  } else if (!session_borrowed_) {
    failure.rethrow();
  } else if (!use_savepoints_ && savepoints_help(part, failure)) {
    use_savepoints_ = true;
  } else if (part.size() == 1) {
    fail(*part.front(), failure);
  } else {  // the commit or the handler for all messages failed: smaller parts show which message causes it
    part_size_ = (part.size() + 1) / 2;
  }
}

/// Prepares the next run after run_again. If the batch or the part was shortened, the next run starts at once.
/// Otherwise the next run must first resolve a claim, and the retry policy limits how long this can take.
void BatchDelivery::prepare_rerun(const Part& part) {
  if (end_ <= part.back()->index || part_size_ < part.size()) return;
  const auto backoff = schedule_.next_backoff();
  if (schedule_.may_retry(backoff) && schedule_.wait(backoff, context_.options.stop)) return;
  fail(*part.front(), failure_of_torn_claim(Failure()));
  finished_ = true;
}

void BatchDelivery::after_transient_error(const Part& part, const Failure& failure) {
  constexpr int patience = 2;
  const bool contention = is_contention(failure);
  const int most_runs = schedule_.policy().max_runs;
  const bool divide = contention && part.size() > 1 && schedule_.attempt() >= std::min(patience, most_runs);
  const auto backoff = schedule_.next_backoff();
  const bool again = (divide || schedule_.attempt() < most_runs) && schedule_.has_time(backoff);
  if (again && context_.can_go_on_after(failure)) {
    context_.notify({.type = EventType::retry,
                     .attempt = schedule_.attempt(),
                     .duration = schedule_.elapsed(),
                     .error = failure.error(),
                     .backoff = backoff});
    if (schedule_.wait(backoff, context_.options.stop)) {
      if (divide) {
        part_size_ = (part.size() + 1) / 2;
        schedule_.start_over();
      }
      return;
    }
  }
  if (!session_borrowed_) failure.rethrow();
  fail(*part.front(), failure);
  schedule_.start_over();
  // If only one message met contention, the others may succeed: they need other rows.
  finished_ = part.size() > 1 || !contention || !schedule_.has_time() || is_finished();
}

/// Gives the message the result of its error. Later messages are not started, unless `OnFailure::skip` says so and it
/// is no error of the environment.
void BatchDelivery::fail(BatchItem& item, const Failure& failure) {
  if (on_failure_ != OnFailure::skip || failure.is_of_environment()) end_ = std::min(end_, item.index);
  item.result = failed_with(failure.error());
  progress_ = true;
}

/// Makes a last attempt to resolve the claims of runs that failed.
void BatchDelivery::resolve_claims() {
  recovery_.resolve_on_new_session(context_.source);
  fail_torn_items(std::nullopt);
}

/// Counts the failures of the latest run. A later copy of the key then finds it parked if it must be.
///
/// It counts a failure only if the handler of the message has run. Otherwise the message did not cause the error.
void BatchDelivery::record_failures() {
  const auto must_count = [](const BatchItem& item) {
    return item.result && item.result->outcome == Outcome::failed && item.runs > 0 && !item.counted;
  };
  const auto latest = std::span(items_).subspan(begin_);
  if (std::ranges::none_of(latest, must_count)) return;
  resolve_claims();
  for (BatchItem& item : latest) {
    if (!must_count(item)) continue;
    item.counted = true;
    context_.record_failure(*item.message, Failure(item.result->error), counting_, item.parked);
  }
}

BatchResults BatchDelivery::finish() {
  for (const std::string& key : taken_over_) {
    context_.notify({.type = EventType::lease_taken_over, .business_key = key, .duration = schedule_.elapsed()});
  }
  BatchResults all;
  std::vector<Result>& results = all.results;
  results.reserve(items_.size());
  bool stopped = false;
  for (BatchItem& item : items_) {
    if (stopped || !item.result) {
      results.push_back({.outcome = Outcome::not_run});
      continue;
    }
    results.push_back(std::move(*item.result));
    const Result& result = results.back();
    stopped = ends_batch(result, on_failure_);
    if (result.outcome == Outcome::failed && item.runs == 0) all.failed_before_handler.push_back(results.size() - 1);
    if (item.parked) results.back().outcome = Outcome::parked;
    context_.notify({.type = event_for(result.outcome),
                     .business_key = item.message->business_key,
                     .message_id = item.message->message_id,
                     .attempt = std::max(item.runs, 1),
                     .duration = schedule_.elapsed(),
                     .error = result.error,
                     .age = result.age});
  }
  context_.duplicates.count(results);
  return all;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
