#include "run/job_runner.hpp"

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "consume/consumer_policy.hpp"
#include "consume/tx_consumer_access.hpp"
#include "lease/lease_consumer_access.hpp"
#include "telemetry/listeners.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

/// A handler that only throws.
struct ThrowingHandler {
  const HandlerError& error;
  bool& was_called;

  void operator()(const HandlerConnection&, Delivery&) const { fail(); }
  void operator()(Lease&) const { fail(); }
  void operator()(soci::session&, Delivery&) const = delete;

 private:
  [[noreturn]] void fail() const {
    was_called = true;
    throw HandlerError(error);
  }
};

/// Counts the failure as the consumer counts all others: it consumes the message with a handler that throws.
template <class Consumer>
std::optional<Result> count_failure_with(Consumer& consumer, const Message& message,
                                         const std::exception_ptr& failure) {
  FailureCount count = FailureCount::none;
  const HandlerError error{.original = failure, .is_proven = true, .count = &count};
  bool was_called = false;
  const NoScopes none;  // no handler runs
  try {
    return consumer.consume(message, ThrowingHandler{error, was_called});
  } catch (...) {
    if (!was_called) return Result{.outcome = Outcome::failed, .error = std::current_exception()};
  }
  // The database did not take it. The handler must not run before it does: later messages may have passed this one.
  if (count == FailureCount::lost) return Result{.outcome = Outcome::in_progress};
  return std::nullopt;
}

Counting counting_of(const Job& job) { return job.front()->counts_later ? Counting::later : Counting::at_once; }

/// Whether two messages of the job belong to one sequence. Then the second must not run if the first fails.
bool has_order(const Job& job) {
  std::unordered_set<const Sequence*> sequences;
  for (const EntryPtr& entry : job) {
    if (!sequences.insert(entry->sequence.get()).second) return true;
  }
  return false;
}

}  // namespace

JobResult JobRunner::run(const Job& job) const {
  if (is_paused()) return {.is_paused = true};
  // The listeners must not get an event of a delivery for each look.
  if (job.front()->is_held && is_parked(job.front()->message)) return {.results = {{.outcome = Outcome::parked}}};
  for (Entry& first = *job.front(); !first.uncounted.empty(); first.uncounted.erase(first.uncounted.begin())) {
    if (auto result = count_failure(first.message, first.uncounted.front())) return {.results = {std::move(*result)}};
  }
  for (const EntryPtr& entry : job) ++entry->incoming.runs;
  JobResult result = run_handler(job);
  for (std::size_t i = 0; i < result.results.size(); ++i) {
    const Result& each = result.results[i];
    if (each.outcome == Outcome::not_run) --job[i]->incoming.runs;
    const bool failed = each.outcome == Outcome::failed || each.outcome == Outcome::parked;
    job[i]->handler_failed = failed && each.error && counts(each.error);
    job[i]->failed_before_handler = false;
  }
  for (const std::size_t i : result.failed_before_handler) {
    job[i]->handler_failed = false;
    job[i]->failed_before_handler = true;
  }
  return result;
}

bool TxJobRunner::counts(const std::exception_ptr& error) const { return TxConsumerAccess::counts(consumer_, error); }

bool TxJobRunner::is_paused() const { return TxConsumerAccess::is_paused(consumer_); }

bool TxJobRunner::is_parked(const Message& message) const { return TxConsumerAccess::is_parked(consumer_, message); }

bool LeaseJobRunner::is_parked(const Message& message) const {
  return LeaseConsumerAccess::is_parked(consumer_, message);
}

bool LeaseJobRunner::is_paused() const { return LeaseConsumerAccess::is_paused(consumer_); }

bool TxJobRunner::has_left_over() const noexcept { return TxConsumerAccess::has_undecided_claims(consumer_); }

void TxJobRunner::tidy_up() const noexcept { TxConsumerAccess::resolve_undecided_claims(consumer_); }

bool LeaseJobRunner::counts(const std::exception_ptr& error) const {
  return LeaseConsumerAccess::counts(consumer_, error);
}

std::optional<Result> TxJobRunner::count_failure(const Message& message, const std::exception_ptr& failure) const {
  return count_failure_with(consumer_, message, failure);
}

JobResult TxJobRunner::run_handler(const Job& job) const {
  const OnFailure in_order = hold_parked_ ? OnFailure::stop_at_parked : OnFailure::stop;
  const OnFailure on_failure = has_order(job) ? in_order : OnFailure::skip;
  std::vector<Message> messages;
  messages.reserve(job.size());
  for (const EntryPtr& entry : job) messages.push_back(std::move(entry->message));
  JobResult result;
  try {
    auto [results, failed_before_handler] =
        TxConsumerAccess::consume_batch(consumer_, messages, handlers_, on_failure, counting_of(job));
    result.results = std::move(results);
    result.failed_before_handler = std::move(failed_before_handler);
  } catch (...) {
    result.error = std::current_exception();
  }
  for (std::size_t i = 0; i < job.size(); ++i) job[i]->message = std::move(messages[i]);
  return result;
}

std::optional<Result> LeaseJobRunner::count_failure(const Message& message, const std::exception_ptr& failure) const {
  return count_failure_with(consumer_, message, failure);
}

JobResult LeaseJobRunner::run_handler(const Job& job) const {
  const Entry& entry = *job.front();
  JobResult result;
  bool handler_ran = false;
  const LeaseHandler handler = [&](Lease& lease) {
    handler_ran = true;
    handler_(lease);
  };
  try {
    result.results.push_back(LeaseConsumerAccess::consume(consumer_, entry.message, handler, counting_of(job)));
  } catch (...) {
    result.results.push_back({.outcome = Outcome::failed, .error = std::current_exception()});
    if (!handler_ran) result.failed_before_handler.push_back(0);
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
