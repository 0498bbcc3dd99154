#include "retention/purge_run.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/error_class.hpp"
#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "base/interruptible_sleep.hpp"
#include "message/key.hpp"
#include "pool/with_session.hpp"
#include "schema/verification.hpp"
#include "tables/audit_table.hpp"
#include "tables/consumed_message_table.hpp"
#include "tables/consumer_table.hpp"
#include "telemetry/listeners.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

constexpr std::size_t largest_batch = 10'000;

std::string_view name_of(Purgeable what) {
  switch (what) {
    case Purgeable::failed:
      return "failed";
    case Purgeable::conflicts:
      return "conflicts";
    default:
      return "consumed";
  }
}

[[noreturn]] void refuse_options(const std::string& text) { throw Error(ErrorCode::invalid_argument, text); }

}  // namespace

void check_age(std::string_view name, std::chrono::seconds older_than) {
  constexpr std::chrono::days longest{36'500};
  if (older_than < std::chrono::seconds(1) || older_than > longest) {
    refuse_options(
        fmt::format("{} is {} s; it must be from 1 s to 100 years, and longer than the longest time after which a "
                    "message can be delivered again",
                    name, older_than.count()));
  }
}

void check(const PurgeOptions& options) {
  if (!options.consumer.empty()) check_consumer(options.consumer);
  if (options.by) check_operator_action(*options.by);
  if (options.batch_size < 1 || options.batch_size > largest_batch) {
    refuse_options(
        fmt::format("PurgeOptions::batch_size is {}; it must be from 1 to {}", options.batch_size, largest_batch));
  }
  if (options.max_time < std::chrono::milliseconds::zero()) {
    refuse_options("PurgeOptions::max_time must be at least zero, which is no limit");
  }
  if (options.max_batch_time < std::chrono::milliseconds(1)) {
    refuse_options("PurgeOptions::max_batch_time must be at least 1 ms");
  }
  if (!(options.duty > 0 && options.duty <= 1)) {
    refuse_options("PurgeOptions::duty must be above 0 and at most 1, which never rests");
  }
  check(options.retry);
  check(options.listeners);
}

PurgeRun::PurgeRun(SessionProvider& source, std::chrono::seconds older_than, const PurgeOptions& options)
    : source_(source), older_than_(older_than), options_(options), throttle_(options), retry_(options.retry) {}

std::size_t PurgeRun::run() {
  try {
    purge_all();
  } catch (...) {
    const auto error = std::current_exception();
    if (removed_ > 0) {
      try {
        record();
      } catch (...) {  // NOLINT(bugprone-empty-catch): the caller gets the first error
      }
    }
    std::rethrow_exception(error);
  }
  record();
  return removed_;
}

void PurgeRun::purge_all() {
  // Verify the tables, even if a limit allows no batch.
  refuse_all_shards(source_.borrow(options_.stop).backend().connection_ptr());
  write_audit("_begin");
  const std::size_t targets = options_.what == Purgeable::failed ? 2 : 1;
  for (std::size_t target = 0; target < targets; ++target) {
    reached_.clear();
    while (!is_over() && purge_batch(target)) {
    }
  }
}

/// Removes one batch. Returns false if this target is finished, or if a stop ended the wait for a connection.
bool PurgeRun::purge_batch(std::size_t target) {
  const std::size_t left = options_.max_rows == 0 ? largest_batch : options_.max_rows - removed_;
  const std::size_t limit = std::min(throttle_.rows(), left);
  backend::PurgeReply reply;
  std::chrono::nanoseconds time{};
  try {
    with_session(source_, options_.stop, [&](backend::Session& session) {
      const auto begin = Clock::now();
      const auto targets = purge_targets(options_.what, session.dialect(), options_.consumer);
      reply = session.purge_some({.target = targets.at(target),
                                  .older_than = older_than_,
                                  .limit = limit,
                                  .window = std::max(limit, throttle_.scan_window()),
                                  .after = reached_});
      time = Clock::now() - begin - reply.waited;
    });
  } catch (...) {
    const Failure failure = Failure::current();
    if (failure.is(ErrorCode::stopped)) return false;
    if (!may_run_again(failure)) throw;
    return true;
  }
  retry_ = RetrySchedule(options_.retry);
  removed_ += reply.removed;
  reached_ = std::move(reply.reached);
  throttle_.on_batch(time, limit, reply.chosen);
  if (reply.removed > 0) notify({.type = EventType::purged, .duration = time, .rows = reply.removed});
  if (reply.end) return false;
  rest(throttle_.pause_after(time));
  return true;
}

bool PurgeRun::is_over() const {
  return options_.stop.stop_requested() || (options_.max_rows != 0 && removed_ >= options_.max_rows) ||
         (options_.max_time.count() != 0 && elapsed() >= options_.max_time);
}

/// In milliseconds, because a long `max_time` does not fit into nanoseconds.
std::chrono::milliseconds PurgeRun::elapsed() const {
  return std::chrono::floor<std::chrono::milliseconds>(Clock::now() - start_);
}

void PurgeRun::rest(std::chrono::nanoseconds time) const {
  if (is_over()) return;
  const auto left = options_.max_time - elapsed();
  const bool is_limited = options_.max_time.count() != 0 && left < std::chrono::ceil<std::chrono::milliseconds>(time);
  sleep_for(is_limited ? left : time, options_.stop);
}

/// Whether the batch may run again after this error. If so, waits first.
bool PurgeRun::may_run_again(const Failure& failure) {
  const auto backoff = retry_.next_backoff();
  const bool usable = source_.reconnects() || !failure.is_fatal_to_session();
  if (!failure.is_transient() || !usable || !retry_.may_retry(backoff)) return false;
  throttle_.on_contention();
  notify({.type = EventType::retry, .attempt = retry_.attempt(), .error = failure.error(), .backoff = backoff});
  retry_.wait(backoff, options_.stop);
  return true;
}

/// Records the purge for operators: `status` and `doctor` show it.
void PurgeRun::record() {
  if (options_.what == Purgeable::consumed) {
    with_session(source_, {}, [&](backend::Session& session) {
      const ConsumerTable table(session, options_.consumer);
      table.record_purge(older_than_, removed_, is_known(session));
    });
  }
  write_audit("");
}

void PurgeRun::write_audit(std::string_view end_of_action) {
  if (!options_.by) return;
  with_session(source_, {}, [&](backend::Session& session) {
    const std::string action = fmt::format("purge_{}{}", name_of(options_.what), end_of_action);
    add_audit_row(session, {.by = options_.by, .action = action, .consumer = options_.consumer}, removed_,
                  backend::TransactionUse::own);
  });
}

/// Whether the consumer's name may get a row. A name that nobody knows may be a typing error and must not get one.
bool PurgeRun::is_known(backend::Session& session) const {
  if (options_.consumer.empty() || removed_ > 0) return true;
  return ConsumedMessageTable(session).has_rows_of(options_.consumer);
}

void PurgeRun::notify(Event event) const noexcept {
  event.consumer = options_.consumer;
  detail::notify(options_.listeners, event);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
