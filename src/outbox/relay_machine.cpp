#include "outbox/relay_machine.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "base/text.hpp"
#include "outbox/outgoing_message.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t most_listed = 10'000;

/// Whether the query has read all rows that it selects.
bool is_all(const std::vector<OutboxRow>& rows, std::size_t limit) {
  std::size_t bytes = 0;
  for (const OutboxRow& row : rows) bytes += row.payload.size();
  return rows.size() < limit && bytes < most_payload_bytes;
}

/// Returns the part of the text that the table keeps.
std::string short_text(std::string_view text) {
  constexpr std::size_t longest = 1'000;
  std::string line = one_line(text.substr(0, longest));
  std::erase(line, '\0');
  line.resize(std::min(line.size(), find_invalid_utf8(line)));
  return line;
}

/// Splits the rows into rounds, so that no round has two rows of one key. Each round keeps the order of the rows.
std::vector<std::vector<OutboxRow>> in_rounds(std::vector<OutboxRow> rows) {
  std::vector<std::vector<OutboxRow>> rounds;
  std::map<std::string, std::size_t, std::less<>> next_round;
  for (OutboxRow& row : rows) {
    const std::size_t round = row.key.empty() ? 0 : next_round[row.key]++;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(std::move(row));
  }
  return rounds;
}

/// Returns `first`, doubled `times` times, but at most `longest`.
milliseconds doubled(milliseconds first, int times, milliseconds longest) {
  return std::min(longest, first * (std::int64_t{1} << std::min(times, 20)));
}

}  // namespace

milliseconds RelayMachine::Doubling::take() noexcept { return std::exchange(next_, std::min(next_ * 2, longest_)); }

RelayMachine::RelayMachine(const RelayOptions& options, const std::function<void(const RelayEvent&)>& notify)
    : options_(options),
      notify_(notify),
      position_(options.sweep),
      idle_(options.poll, options.idle_poll),
      call_backoff_(options.initial_backoff, options.max_backoff),
      database_backoff_(options.initial_backoff, options.max_backoff) {}

RelayJob RelayMachine::next(Time now) {
  for (;;) {
    if (now < database_resumes_ && !stopping_) return relay_job::Wait{database_resumes_};
    if (auto settlement = next_settlement(now)) return *settlement;
    if (stopping_) return relay_job::End{};
    if (round_ < rounds_.size()) {
      if (auto call = next_call(now)) return *call;
      continue;
    }
    rounds_.clear();
    round_ = 0;
    due_.end(blocked_, now);
    if (now >= next_refresh_ || now >= expires_) return relay_job::Refresh{};
    if (parts_.empty()) return relay_job::Wait{next_refresh_};
    if (now < calls_resume_) return relay_job::Wait{std::min(calls_resume_, next_refresh_)};
    if (auto step = next_in_cycle(now)) return *step;
  }
}

/// Between two calls, it settles only if the last time is long ago.
std::optional<RelayJob> RelayMachine::next_settlement(Time now) {
  constexpr std::chrono::seconds longest_unsettled(1);
  if (round_ < rounds_.size() && !stopping_ && now - settled_at_ <= longest_unsettled) return std::nullopt;
  if (!confirmed_.empty()) return relay_job::Remove{confirmed_};
  if (!failures_.empty()) return relay_job::Count{failures_};
  settled_at_ = now;
  return std::nullopt;
}

/// Returns the call for the next round. None if no row of the round can be published now.
std::optional<RelayJob> RelayMachine::next_call(Time now) {
  if (parts_.empty()) {  // the lease was lost; with the next parts, it reads all rows again
    round_ = rounds_.size();
    return std::nullopt;
  }
  if (must_renew_ || now > expires_ - options_.lease / 2) return relay_job::Renew{};  // a call may take half of it
  messages_.clear();
  sent_.clear();
  for (OutboxRow& row : rounds_[round_++]) {
    if (blocked_.contains(row)) continue;
    OutboxRow kept{.seq = row.seq, .id = row.id, .key = row.key, .attempts = row.attempts};
    try {
      messages_.push_back(message_of(std::move(row)));
      sent_.push_back(std::move(kept));
    } catch (const Error& error) {
      fail(kept, {.status = PublishStatus::rejected, .error = error.what()}, BlockedKeys::any_number, now);
    }
  }
  if (messages_.empty()) return std::nullopt;
  return relay_job::Publish{messages_};
}

std::optional<RelayJob> RelayMachine::next_in_cycle(Time now) {
  switch (phase_) {
    case Phase::sweep:
      phase_ = Phase::watermark;
      if (!position_.sweep_is_due(now)) return std::nullopt;
      return relay_job::List{
          {.parts = parts_, .after = position_.swept(), .up_to = position_.after(), .limit = most_listed}};
    case Phase::watermark:
      phase_ = Phase::due;
      return next_of_watermark(now);
    case Phase::due:
      phase_ = Phase::latest;
      if (!due_.start(blocked_, now, options_.batch)) return std::nullopt;
      return relay_job::Read{due_.queries(parts_, options_.batch)};
    case Phase::latest:
      phase_ = Phase::rest;
      return relay_job::Read{
          {{.parts = parts_, .after = position_.after(), .limit = options_.batch, .watermark = watermark_.found()}}};
    case Phase::rest:
      break;
  }
  const Time end = end_of_rest(now);
  if (now < end) return relay_job::Wait{end};
  rest_ends_.reset();
  found_rows_ = more_rows_ = false;
  phase_ = Phase::sweep;
  return std::nullopt;
}

std::optional<RelayJob> RelayMachine::next_of_watermark(Time now) {
  if (watermark_.must_list()) {
    lists_for_watermark_ = true;
    return relay_job::List{
        {.parts = parts_, .after = watermark_.listed(), .up_to = watermark_.candidate(), .limit = most_listed}};
  }
  if (watermark_.must_read_writers(position_.after(), now)) return relay_job::ReadWriters{};
  return std::nullopt;
}

RelayMachine::Time RelayMachine::end_of_rest(Time now) {
  if (!rest_ends_) {
    if (found_rows_) idle_.reset();
    rest_ends_ = more_rows_ ? now : now + idle_.take();
  }
  return blocked_.next(std::min(*rest_ends_, next_refresh_));
}

void RelayMachine::woken() noexcept {
  idle_.reset();
  rest_ends_ = Time{};
}

void RelayMachine::refreshed(std::set<int> parts, bool took, Time expires, Time now) {
  const std::size_t before = parts_.size();
  parts_ = std::move(parts);
  expires_ = expires;
  must_renew_ = false;
  next_refresh_ = now + options_.lease / 6;
  if (took) {
    position_.start_over(now);
    watermark_.start_over();
  }
  if (parts_.size() != before) notify_({.type = RelayEventType::parts, .parts = parts_.size()});
}

void RelayMachine::renewed(std::optional<Time> expires) {
  must_renew_ = false;
  expires_ = expires.value_or(Time{});
  if (!expires) parts_.clear();
}

void RelayMachine::listed(const std::vector<OutboxRow>& rows, Time now) {
  for (const OutboxRow& row : rows) {
    if (!blocked_.contains(row)) blocked_.block(row, now);
  }
  const bool all = rows.size() < most_listed;
  if (!all) more_rows_ = true;
  const std::int64_t last = rows.empty() ? 0 : rows.back().seq;
  if (std::exchange(lists_for_watermark_, false)) {
    watermark_.advance(last, all);
  } else {
    position_.advance_sweep(last, all, now);
  }
}

void RelayMachine::read_writers(std::optional<OutboxWriters> writers, Time now) {
  if (!watermark_.take(std::move(writers), position_.after(), now)) position_.start_over(now);
}

void RelayMachine::read(std::vector<OutboxRow> rows, bool durable, Time now) {
  const bool all = is_all(rows, options_.batch);
  if (!rows.empty()) found_rows_ = true;
  if (!durable && !rows.empty()) must_renew_ = true;  // the renewal commits
  if (due_.is_running()) {
    found_rows_ = true;
    if (all) suspects_.forget_missing(due_.asked(), rows);
    due_.finish(rows, all, blocked_);
  } else {
    if (!all) more_rows_ = true;
    position_.advance(rows.empty() ? 0 : rows.back().seq, all, now);
    database_backoff_.reset();
  }
  for (const OutboxRow& row : rows) {
    if (row.is_late && !blocked_.contains(row)) blocked_.block(row, now);
  }
  rounds_ = in_rounds(std::move(rows));
  round_ = 0;
  settled_at_ = now;
}

void RelayMachine::published(const std::vector<PublishResult>& results, Time now) {
  if (results.size() != sent_.size()) {
    return publisher_threw(
        std::make_exception_ptr(
            Error(ErrorCode::invalid_argument,
                  fmt::format("the publisher returned {} results for {} messages", results.size(), sent_.size()))),
        now);
  }
  succeeded_ = true;
  call_backoff_.reset();
  const auto is_confirmed = [](const PublishResult& result) { return result.status == PublishStatus::confirmed; };
  if (std::ranges::any_of(results, is_confirmed)) suspects_.call_succeeded();
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    suspects_.forget(sent_[i]);
    take_result(sent_[i], results[i], now);
  }
}

void RelayMachine::publisher_threw(const std::exception_ptr& error, Time now) {
  notify_({.type = RelayEventType::error, .error = error});
  if (suspects_.call_threw(sent_)) {
    return fail(sent_[0], {.status = PublishStatus::failed, .error = describe_error(error)}, 1, now);
  }
  // The first such call can have its reason in a message. So only the second one waits.
  if (!std::exchange(succeeded_, false)) calls_resume_ = now + call_backoff_.take();
  if (sent_.size() == 1) {
    const int throws = suspects_.count_throw(sent_[0]);
    blocked_.block(sent_[0], now + doubled(options_.initial_backoff, throws, options_.max_backoff), 1);
  } else {
    for (const OutboxRow& row : sent_) blocked_.block(row, now, (sent_.size() + 1) / 2);
  }
}

void RelayMachine::take_result(const OutboxRow& row, const PublishResult& result, Time now) {
  switch (result.status) {
    case PublishStatus::confirmed:
      confirmed_.push_back({row.seq, row.id});
      break;
    case PublishStatus::postponed:
      wait(row, options_.poll, result.retry_after, now);
      break;
    case PublishStatus::failed:
    case PublishStatus::rejected:
      fail(row, result, BlockedKeys::any_number, now);
      break;
  }
}

/// Handles a message that was not confirmed. If the message is parked, its key waits only until the table contains
/// this.
void RelayMachine::fail(const OutboxRow& row, const PublishResult& result, std::size_t most, Time now) {
  std::string error = short_text(result.error);
  const int attempts = row.attempts + 1;
  const bool park =
      result.status == PublishStatus::rejected || (options_.max_attempts > 0 && attempts >= options_.max_attempts);
  if (park) {
    suspects_.forget(row);
    wait(row, {}, {}, now);
  } else {
    wait(row, doubled(options_.initial_backoff, row.attempts, options_.max_backoff), result.retry_after, now, most);
  }
  notify_({.type = park ? RelayEventType::parked : RelayEventType::failed,
           .id = row.id,
           .attempts = attempts,
           .text = error});
  failures_.push_back({{row.seq, row.id}, attempts, std::move(error), park});
}

void RelayMachine::wait(const OutboxRow& row, milliseconds least, milliseconds wanted, Time now, std::size_t most) {
  constexpr milliseconds longest = std::chrono::days(1);
  blocked_.block(row, now + std::max(least, std::min(wanted, longest)), most);
}

void RelayMachine::removed(Time now) {
  const std::size_t messages = std::exchange(confirmed_, {}).size();
  notify_({.type = RelayEventType::published, .messages = messages, .duration = now - settled_at_});
}

void RelayMachine::database_failed(const std::exception_ptr& error, Time now) {
  if (stopping_) {  // do not wait for the database: these messages are published again
    confirmed_.clear();
    failures_.clear();
    return;
  }
  notify_({.type = RelayEventType::error, .error = error});
  database_resumes_ = now + database_backoff_.take();
  due_.fail();
  lists_for_watermark_ = false;
  watermark_.start_over();  // another server may have taken over
  phase_ = Phase::sweep;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
