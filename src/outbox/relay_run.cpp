#include "outbox/relay_run.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "base/one_line.hpp"
#include "base/utf8.hpp"
#include "outbox/outgoing_message.hpp"
#include "pool/with_session.hpp"
#include "telemetry/scope.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

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

}  // namespace

RelayRun::RelayRun(SessionProvider& source, const Publisher& publisher, const RelayOptions& options)
    : source_(source),
      publisher_(publisher),
      options_(options),
      leases_(source, options.lease),
      position_(options.sweep) {}

void RelayRun::notify(const RelayEvent& event) const noexcept {
  if (options_.observer) ignore_errors([&] { options_.observer(event); });
}

RelayRun::Clock::time_point RelayRun::next(Clock::time_point latest) const {
  return blocked_.next(std::min(latest, leases_.next_refresh()));
}

RelayRun::Found RelayRun::step(const std::stop_token& stop) {
  settle();  // completes what an error has interrupted
  if (Clock::now() >= leases_.next_refresh() || !leases_.valid()) {
    const std::size_t before = leases_.parts().size();
    if (leases_.refresh(stop)) position_.start_over(Clock::now());
    if (leases_.parts().size() != before) {
      notify({.type = RelayEventType::parts, .parts = leases_.parts().size()});
    }
  }
  if (leases_.parts().empty()) return Found::nothing;
  const auto now = Clock::now();
  const bool more_to_sweep = position_.sweep_is_due(now) && sweep(now, stop);
  const bool was_due = publish_due(now, stop);

  std::vector<OutboxRow> rows =
      read({{.parts = leases_.parts(), .after = position_.after(), .limit = options_.batch}}, stop);
  const bool all = is_all(rows, options_.batch);
  const bool none = rows.empty() && !was_due;
  const std::int64_t last = rows.empty() ? 0 : rows.back().seq;
  if (!publish(std::move(rows), stop)) return Found::nothing;
  position_.advance(last, all, Clock::now());
  if (!all || more_to_sweep) return Found::more;
  return none ? Found::nothing : Found::some;
}

bool RelayRun::sweep(Clock::time_point now, const std::stop_token& stop) {
  constexpr std::size_t limit = 10'000;
  const OutboxQuery query{
      .parts = leases_.parts(), .after = position_.swept(), .up_to = position_.after(), .limit = limit};
  const std::vector<OutboxRow> rows =
      with_session(source_, stop, [&](backend::Session& session) { return OutboxMessageTable(session).list(query); });
  for (const OutboxRow& row : rows) {
    if (!blocked_.contains(row)) blocked_.block(row, now);
  }
  const bool all = rows.size() < limit;
  position_.advance_sweep(rows.empty() ? 0 : rows.back().seq, all, now);
  return !all;
}

bool RelayRun::publish_due(Clock::time_point now, const std::stop_token& stop) {
  const std::vector<OutboxRow> due = blocked_.due(now, options_.batch);
  if (due.empty()) return false;
  std::vector<std::string> keys;
  std::vector<std::int64_t> numbers;  // of messages without a key
  for (const OutboxRow& row : due) {
    if (row.key.empty()) {
      numbers.push_back(row.seq);
    } else {
      keys.push_back(row.key);
    }
  }
  std::vector<OutboxQuery> queries;
  if (!keys.empty()) queries.push_back({.parts = leases_.parts(), .keys = keys, .limit = options_.batch});
  if (!numbers.empty()) queries.push_back({.parts = leases_.parts(), .rows = numbers, .limit = options_.batch});
  std::vector<OutboxRow> rows = read(queries, stop);
  const bool all = is_all(rows, options_.batch);
  for (const OutboxRow& row : due) blocked_.release(row);
  // What was not read or not tried is due again.
  const auto keep = [&] {
    for (const OutboxRow& row : due) {
      if (!blocked_.contains(row)) blocked_.block(row, now);
    }
  };
  try {
    const bool complete = publish(std::move(rows), stop);
    if (!complete || !all) keep();
  } catch (...) {
    keep();
    throw;
  }
  return true;
}

/// Returns the rows of all queries, in their order. Each of the rows is durable.
std::vector<OutboxRow> RelayRun::read(const std::vector<OutboxQuery>& queries, const std::stop_token& stop) {
  std::vector<OutboxRow> rows;
  const bool is_durable = with_session(source_, stop, [&](backend::Session& session) {
    for (const OutboxQuery& query : queries) {
      std::ranges::move(OutboxMessageTable(session).read(query), std::back_inserter(rows));
    }
    return !session.shows_commits_early();
  });
  // The relay's own commit makes what it has read durable, too.
  if (!is_durable && !rows.empty()) leases_.renew(stop);
  return rows;
}

/// Publishes the rows. Returns false if it stopped before the last row.
bool RelayRun::publish(std::vector<OutboxRow> rows, const std::stop_token& stop) {
  constexpr std::chrono::seconds longest_unsettled(1);
  settled_at_ = Clock::now();
  bool complete = true;
  for (const OutboxRow& row : rows) {
    if (row.is_late && !blocked_.contains(row)) blocked_.block(row, settled_at_);
  }
  try {
    for (std::vector<OutboxRow>& round : in_rounds(std::move(rows))) {
      std::erase_if(round, [&](const OutboxRow& row) { return blocked_.contains(row); });
      if (round.empty()) continue;
      complete = publish_round(std::move(round), stop);
      if (!complete) break;
      if (Clock::now() - settled_at_ > longest_unsettled) settle();
    }
  } catch (...) {
    settle();
    throw;
  }
  settle();
  return complete;
}

/// Whether a call of the publisher may begin. If less than half of the lease is left, it renews the lease first: a call
/// may take half of it.
bool RelayRun::may_publish(const std::stop_token& stop) {
  if (stop.stop_requested()) return false;
  if (leases_.needs_renewal() && !leases_.renew(stop)) return false;
  return leases_.valid();
}

bool RelayRun::publish_round(std::vector<OutboxRow> round, const std::stop_token& stop) {
  if (!may_publish(stop)) return false;
  std::vector<OutgoingMessage> messages;
  std::vector<OutboxRow> sent;  // the rows of `messages`, without payload and headers
  for (OutboxRow& row : round) {
    OutboxRow kept{.seq = row.seq, .id = row.id, .key = row.key, .attempts = row.attempts};
    try {
      messages.push_back(message_of(std::move(row)));
      sent.push_back(std::move(kept));
    } catch (const Error& error) {
      fail(kept, {.status = PublishStatus::rejected, .error = error.what()});
    }
  }
  if (messages.empty()) return true;
  const std::vector<PublishResult> results = publisher_(messages);
  if (results.size() != messages.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the publisher returned {} results for {} messages", results.size(), messages.size()));
  }
  for (std::size_t i = 0; i < sent.size(); ++i) take_result(sent[i], results[i]);
  return true;
}

void RelayRun::take_result(const OutboxRow& row, const PublishResult& result) {
  switch (result.status) {
    case PublishStatus::confirmed:
      confirmed_.push_back({row.seq, row.id});
      break;
    case PublishStatus::postponed:
      wait(row, options_.poll, result.retry_after);
      break;
    case PublishStatus::failed:
    case PublishStatus::rejected:
      fail(row, result);
      break;
  }
}

/// Handles a message that was not confirmed. If the message is parked, its key waits only until the table contains
/// this.
void RelayRun::fail(const OutboxRow& row, const PublishResult& result) {
  std::string error = short_text(result.error);
  const int attempts = row.attempts + 1;
  const bool park =
      result.status == PublishStatus::rejected || (options_.max_attempts > 0 && attempts >= options_.max_attempts);
  if (park) {
    wait(row, {}, {});
  } else {
    const auto backoff =
        std::min(options_.max_backoff, options_.initial_backoff * (std::int64_t{1} << std::min(row.attempts, 20)));
    wait(row, backoff, result.retry_after);
  }
  notify({.type = park ? RelayEventType::parked : RelayEventType::failed,
          .id = row.id,
          .attempts = attempts,
          .text = error});
  failures_.push_back({{row.seq, row.id}, std::move(error), park});
}

void RelayRun::wait(const OutboxRow& row, std::chrono::milliseconds least, std::chrono::milliseconds wanted) {
  constexpr std::chrono::milliseconds longest = std::chrono::days(1);
  blocked_.block(row, Clock::now() + std::max(least, std::min(wanted, longest)));
}

void RelayRun::settle() {
  // Do not use the stop token here: otherwise the confirmed messages would be published again.
  if (!confirmed_.empty()) {
    with_session(source_, {}, [&](backend::Session& session) { OutboxMessageTable(session).remove(confirmed_); });
    const std::size_t messages = std::exchange(confirmed_, {}).size();
    // Notify only now: the observer may need the session that was given back.
    notify({.type = RelayEventType::published, .messages = messages, .duration = Clock::now() - settled_at_});
  }
  if (!failures_.empty()) {
    with_session(source_, {}, [&](backend::Session& session) {
      const OutboxMessageTable table(session);
      while (!failures_.empty()) {
        table.record_failure(failures_.back().row, failures_.back().error, failures_.back().park);
        failures_.pop_back();
      }
    });
  }
  settled_at_ = Clock::now();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
