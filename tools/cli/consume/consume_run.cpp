#include "cli/consume/consume_run.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "cli/consume/input_file.hpp"
#include "console/describe_error.hpp"
#include "console/exit_status.hpp"

namespace txinbox::cli {
namespace {

// Whether the message has no result yet: a run can still consume it.
bool is_open(const Result& result) {
  return result.outcome == Outcome::not_run ||
         (result.outcome == Outcome::failed &&
          (ScriptHandler::is_held_back(result.error) || detail::Failure(result.error).is(ErrorCode::stopped)));
}

std::size_t end_of_open(const std::vector<Result>& results, std::size_t at) {
  while (at < results.size() && is_open(results[at])) ++at;
  return at;
}

}  // namespace

int ConsumeRun::run(int input_fd) {
  LineReader lines(input_fd, signals_.wake_fd(), max_line_size);
  BatchReader batches(lines, messages_,
                      {.lines = options_.batch, .bytes = max_batch_size, .ends_at_wrong = options_.stop_on_error});
  const unsigned long long size = size_left(input_fd);
  Batch batch;
  Next next = Next::go_on;
  while (next == Next::go_on) {
    const auto status = batches.next(batch);
    if (batch.empty_through != 0) report_.done_through(batch.empty_through);
    if (status == BatchReader::Status::stopped) {  // the lines that were read are not consumed
      next = Next::stop_signal;
      break;
    }
    next = consume(batch);
    const bool heard = report_.flush({.done = lines.bytes(), .all = size});
    if (next == Next::go_on && !batch.lines.empty() && (signals_.stopped() || !heard)) next = Next::stop_signal;
    if (next == Next::go_on && status == BatchReader::Status::error) {
      report_.reading_failed(lines.number(), lines.error_number());
      next = Next::stop_failed;
    }
    if (status == BatchReader::Status::end) break;
  }
  const bool heard = report_.sum_up(next != Next::go_on);
  if (next == Next::stop_database) return exit_database;
  if (next == Next::stop_signal || !heard) return exit_stopped;
  return report_.all_well() ? exit_ok : exit_found;
}

// If the run ends at a line, later messages of the batch may already be consumed. These are reported. The messages
// between the line and them are not done.
ConsumeRun::Next ConsumeRun::consume(Batch& batch) {
  using Order = ScriptHandler::Order;
  ScriptHandler handler(script_, batch, options_.stop_on_error ? Order::strict : Order::free);
  std::vector<Result> results(batch.messages.size(), {.outcome = Outcome::not_run});
  Next next = Next::go_on;
  bool gap = false;
  std::size_t message = 0;
  for (const Line& line : batch.lines) {
    const bool ended = next != Next::go_on;
    bool reported = !ended;
    if (!line.is_message()) {
      if (reported) next = report_failed(line.number, line.key, "invalid", line.wrong);
      if (reported && line.ends_input) next = Next::stop_failed;
    } else {
      const std::size_t m = message++;
      if (!ended && is_open(results[m]) && !signals_.stopped()) {
        consume_some(batch, handler, {m, end_of_open(results, m)}, results);
      }
      reported = ended ? results[m].outcome == Outcome::consumed : !is_open(results[m]);
      if (reported) {
        const Next after = report_result(line.number, batch.messages[m].business_key, results[m], handler.run_of(m));
        if (!ended) next = after;
      } else if (!ended) {
        next = Next::stop_signal;
      }
    }
    gap = gap || next != Next::go_on;  // the line that ends the run is not done
    if (!gap) report_.done_through(line.through);
  }
  return next;
}

void ConsumeRun::consume_some(Batch& batch, ScriptHandler& handler, Range range, std::vector<Result>& results) {
  const auto at = results.begin() + static_cast<std::ptrdiff_t>(range.begin);
  handler.begin(range.begin, range.end);
  const WaitNotice::Call call(notice_);
  try {
    const auto messages = std::span(batch.messages).subspan(range.begin, range.end - range.begin);
    const OnFailure on_failure = options_.stop_on_error ? OnFailure::stop : OnFailure::skip;
    auto some = script_.most_together > 0 ? consumer_.consume_batch(messages, handler.handlers(), on_failure)
                                          : consumer_.consume_batch(messages, handler.handler(), on_failure);
    std::move(some.begin(), some.end(), at);
  } catch (...) {  // no message was consumed
    std::fill(at, results.begin() + static_cast<std::ptrdiff_t>(range.end), Result{.outcome = Outcome::not_run});
    *at = {.outcome = Outcome::failed, .error = std::current_exception()};
  }
}

ConsumeRun::Next ConsumeRun::report_result(std::size_t line, std::string_view key, const Result& result,
                                           const ScriptHandler::Run& run) {
  switch (result.outcome) {
    case Outcome::consumed:
    case Outcome::already_consumed:
    case Outcome::discarded:
      report_.ended(line, key, result.outcome);
      return Next::go_on;
    case Outcome::conflict:
      report_.ended(line, key, result.outcome, "conflict: the same key came with other content");
      return after_failure();
    case Outcome::parked:
      if (result.error) break;  // parked by this run
      report_.ended(line, key, result.outcome,
                    "parked: its handler failed too often, or ended the transaction itself; see txinbox failed list");
      return after_failure();
    case Outcome::in_progress:
    case Outcome::postponed:
    case Outcome::not_run:
      return report_failed(line, key, to_string(result.outcome),
                           "in progress: another worker has a lease on the key; deliver it again");
    case Outcome::failed:
      break;
  }
  std::string why = describe_error(result.error, options_.verbose);
  if (run.error && run.error == result.error) why = fmt::format("statement {}: {}", run.statement, why);
  if (result.outcome == Outcome::parked) why += "; parked: it does not run again until txinbox failed retry";
  const detail::Failure failure(result.error);
  const bool is_invalid = failure.is(ErrorCode::invalid_key) || failure.is(ErrorCode::unreadable);
  const Next next = report_failed(line, key, is_invalid ? "invalid" : "failed", why);
  if (failure.is_transient() && signals_.stopped()) return Next::stop_signal;
  // An error of the claim or of the environment. The next messages would meet it, too.
  const bool inbox_failed = !run.begun && failure.is_of_database();
  if (inbox_failed || failure.is_transient() || failure.is_of_environment() || action_for(result) == Action::stop) {
    return Next::stop_database;
  }
  return next;
}

ConsumeRun::Next ConsumeRun::report_failed(std::size_t line, std::string_view key, std::string_view outcome,
                                           std::string_view why) {
  report_.failed(line, key, outcome, why);
  return after_failure();
}

}  // namespace txinbox::cli
