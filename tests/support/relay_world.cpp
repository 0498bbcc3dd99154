#include "support/relay_world.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "types/enum_names.hpp"

namespace txinbox::test {

using namespace std::chrono_literals;
using detail::OutboxRow;
namespace job = detail::relay_job;

namespace {

constexpr detail::EnumNames<Twist, Twist::stop> twist_names("fails_before", "fails_after", "refused", "rejected",
                                                            "postponed", "not_durable", "lease_lost", "late_row",
                                                            "new_row", "row_gone", "number_again", "slow", "stop");

bool contains(std::span<const std::string> values, const std::string& value) {
  return std::ranges::find(values, value) != values.end();
}

}  // namespace

std::string_view to_string(Twist twist) noexcept { return twist_names[twist]; }

RelayOptions relay_test_options(std::size_t batch) {
  return {.batch = batch,
          .poll = 100ms,
          .idle_poll = 1s,
          .sweep = 10s,
          .lease = 30s,
          .initial_backoff = 1s,
          .max_backoff = 60s};
}

RelayWorld::RelayWorld(RelayOptions options)
    : options_(std::move(options)), notify_([this](const RelayEvent& event) { events.push_back(event.type); }) {
  start();
}

void RelayWorld::start() { machine_ = std::make_unique<detail::RelayMachine>(options_, notify_); }

void RelayWorld::wrong(std::string text) {
  if (problem_.empty()) problem_ = fmt::format("{} (job {})", text, job_);
}

std::string RelayWorld::new_row(std::int64_t seq, const std::string& key) {
  std::string id = fmt::format("{}{}", key.empty() ? "no key " : key, ++ids_);
  rows.insert_or_assign(seq, Row{id, key});
  expected_.insert(id);
  return id;
}

std::string RelayWorld::add(const std::string& key) { return new_row(next_seq_++, key); }
std::string RelayWorld::add_late(const std::string& key) { return new_row(--least_seq_, key); }

const RelayWorld::Row& RelayWorld::row_of(const std::string& id) const {
  return std::ranges::find_if(rows, [&](const auto& row) { return row.second.id == id; })->second;
}

bool RelayWorld::is_idle() const {
  return std::ranges::all_of(rows, [](const auto& row) { return row.second.parked; });
}

void RelayWorld::run(const std::vector<RelayTwist>& twists) {
  const Time end = now + 1h;
  const int last = twists.empty() ? 0 : twists.back().job;
  while (now < end && problem_.empty() && (job_ <= last || !is_idle())) {
    step(twists);
    if (job_ > 2'000) wrong("the relay does not rest");
  }
  if (!is_idle()) wrong(fmt::format("{} is not published", rows.begin()->second.id));
  for (const auto& [seq, row] : rows) expected_.erase(row.id);
  for (const std::string& id : expected_) {
    if (!stored.contains(id)) wrong(id + " was removed, and the broker does not have it");
  }
}

void RelayWorld::run_for(std::chrono::milliseconds time) {
  const Time end = now + time;
  while (now < end && problem_.empty()) step({});
}

int RelayWorld::run_to_end() {
  while (problem_.empty() && step({})) {
  }
  return job_ - called_at_;
}

/// Returns false if the relay has ended. Then another one has started.
bool RelayWorld::step(const std::vector<RelayTwist>& twists) {
  const detail::RelayJob next = machine_->next(now);
  if (std::holds_alternative<job::End>(next)) {
    start();
    return false;
  }
  if (const auto* wait = std::get_if<job::Wait>(&next)) {
    perform(*wait);
    return true;
  }
  twist_.reset();
  for (const RelayTwist& each : twists) {
    if (each.job == job_) twist_ = each.what;
  }
  late_row_can_come_ = std::ranges::any_of(
      twists, [&](const RelayTwist& each) { return each.what == Twist::late_row && each.job > job_; });
  ++job_;
  now += 1ms;
  if (twist_) happen(*twist_);
  try {
    std::visit([this](const auto& each) { perform(each); }, next);
  } catch (const Failed&) {
    machine_->database_failed(std::make_exception_ptr(std::runtime_error("the database has failed")), now);
  }
  return true;
}

/// The work of other processes before a job.
void RelayWorld::happen(Twist twist) {
  switch (twist) {
    case Twist::lease_lost:
      take_over();
      break;
    case Twist::late_row:
      add_late("a");
      break;
    case Twist::new_row:
      add("a");
      break;
    case Twist::row_gone:
      if (rows.empty()) break;
      expected_.erase(rows.begin()->second.id);
      rows.erase(rows.begin());
      break;
    case Twist::number_again:
      if (rows.empty()) break;
      expected_.erase(rows.begin()->second.id);
      new_row(rows.begin()->first, "a");
      ++server;
      break;
    case Twist::slow:
      now += options_.lease;
      break;
    case Twist::stop:
      machine_->stop();
      break;
    default:
      break;
  }
}

/// Another relay publishes and removes all rows.
void RelayWorld::take_over() {
  has_parts_ = false;
  for (const auto& [seq, row] : rows) {
    if (!row.parked) stored.insert(row.id);
  }
  std::erase_if(rows, [](const auto& row) { return !row.second.parked; });
}

template <class Effect>
void RelayWorld::in_database(const Effect& effect) {
  if (database_is_down || twist_ == Twist::fails_before) throw Failed();
  effect();
  if (twist_ == Twist::fails_after) throw Failed();
}

void RelayWorld::perform(const job::Refresh&) {
  const Time sent = now;
  const bool took = !has_parts_ || now >= expires_ || parts.size() > taken_;
  taken_ = parts.size();
  in_database([&] {
    has_parts_ = true;
    expires_ = sent + options_.lease;
    volatile_.clear();
  });
  if (twist_ == Twist::slow) has_parts_ = true;
  machine_->refreshed(parts, took, expires_, now);
}

void RelayWorld::perform(const job::Renew&) {
  const bool renewed = has_parts_ && now < expires_;
  in_database([&] {
    if (!renewed) return;
    expires_ = now + options_.lease;
    volatile_.clear();
  });
  machine_->renewed(renewed ? std::optional(expires_) : std::nullopt);
}

std::vector<OutboxRow> RelayWorld::select(const detail::OutboxQuery& query) {
  std::vector<OutboxRow> found;
  const std::set<std::int64_t> numbers(query.rows.begin(), query.rows.end());
  for (const auto& [seq, row] : rows) {
    if (row.parked || seq <= query.after || found.size() == query.limit) continue;
    if (query.up_to && seq > *query.up_to) continue;
    if (!query.parts.contains(detail::outbox_part(row.key, row.id))) continue;
    if (!query.keys.empty() && !contains(query.keys, row.key)) continue;
    if (!query.rows.empty() && (!row.key.empty() || !numbers.contains(seq))) continue;
    const std::int64_t known = query.watermark.server == server ? query.watermark.seq : 0;
    const bool is_late =
        !row.key.empty() && std::ranges::any_of(rows, [&, after = query.after, &key = row.key](const auto& each) {
          return each.second.key == key && each.first > known && each.first <= after && !each.second.parked;
        });
    found.push_back({.seq = seq, .id = row.id, .key = row.key, .attempts = row.attempts, .is_late = is_late});
  }
  return found;
}

void RelayWorld::perform(const job::List& list) {
  std::vector<OutboxRow> found;
  in_database([&] { found = select(list.query); });
  machine_->listed(found, now);
}

void RelayWorld::perform(const job::ReadWriters&) {
  std::optional<detail::OutboxWriters> writers;
  in_database([&] {
    if (!tells_writers) return;
    writers = {.server = server,
               .transactions = {open_writers.begin(), open_writers.end()},
               .has_prepared = has_prepared_writer};
    if (late_row_can_come_) writers->transactions.emplace_back("of the late row");
  });
  machine_->read_writers(std::move(writers), now);
}

void RelayWorld::perform(const job::Read& read) {
  std::vector<OutboxRow> found;
  in_database([&] {
    for (const detail::OutboxQuery& query : read.queries) {
      watermark = query.watermark;
      for (OutboxRow& row : select(query)) found.push_back(std::move(row));
    }
  });
  seen_.clear();
  for (const auto& [seq, row] : rows) seen_.insert(row.id);
  const bool durable = twist_ != Twist::not_durable;
  if (!durable) {
    for (const OutboxRow& row : found) volatile_.insert(row.id);
  }
  machine_->read(std::move(found), durable, now);
}

/// Checks that no earlier message of these keys is waiting.
void RelayWorld::check_order(const std::vector<std::string>& ids) {
  std::set<std::string> keys;
  for (const auto& [seq, row] : rows) {
    if (!contains(ids, row.id)) {
      // A row that was committed after the read, and one that the broker has, do not hold up the others.
      if (!row.parked && seen_.contains(row.id) && !confirmed_.contains(row.id)) keys.insert(row.key);
      continue;
    }
    if (!row.key.empty() && !keys.insert(row.key).second) {
      wrong(fmt::format("{} is published before an earlier message of its key, or with one", row.id));
    }
  }
}

void RelayWorld::perform(const job::Publish& publish) {
  std::vector<std::string> ids;
  for (const OutgoingMessage& message : publish.messages) ids.push_back(message.id);
  // If the time has passed, or another relay has the parts, only since the job began, the relay cannot know it.
  const bool just_now = twist_ == Twist::slow || twist_ == Twist::lease_lost;
  if (!just_now && now >= expires_ + 1ms) wrong("the relay publishes without a lease");
  if (has_parts_ && !just_now) check_order(ids);
  for (const std::string& id : ids) {
    if (volatile_.contains(id)) wrong(id + " is published before it is durable");
  }
  calls.push_back(ids);
  called_at_ = job_;
  std::vector<PublishResult> results(ids.size());
  try {
    if (twist_ == Twist::fails_before) throw std::runtime_error("the publisher has failed");
    if (publisher) results = publisher(publish.messages);
    if (twist_ == Twist::refused) results[0].status = PublishStatus::failed;
    if (twist_ == Twist::rejected) results[0].status = PublishStatus::rejected;
    if (twist_ == Twist::postponed) std::ranges::fill(results, PublishResult{.status = PublishStatus::postponed});
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (results[i].status == PublishStatus::confirmed) stored.insert(ids[i]);
    }
    if (twist_ == Twist::fails_after) throw std::runtime_error("the publisher's answer is lost");
  } catch (const std::runtime_error&) {
    for (const std::string& id : ids) ++failures_[id];
    return machine_->publisher_threw(std::current_exception(), now);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (results[i].status == PublishStatus::confirmed) confirmed_.insert(ids[i]);
    if (results[i].status == PublishStatus::failed || results[i].status == PublishStatus::rejected) ++failures_[ids[i]];
  }
  machine_->published(results, now);
}

void RelayWorld::perform(const job::Remove& remove) {
  in_database([&] {
    for (const detail::OutboxRowKey& key : remove.rows) {
      if (!confirmed_.contains(key.id)) wrong(key.id + " is removed, and the publisher has not confirmed it");
      const auto row = rows.find(key.seq);
      if (row != rows.end() && row->second.id == key.id) rows.erase(row);
    }
  });
  machine_->removed(now);
}

void RelayWorld::perform(const job::Count& count) {
  for (const detail::FailedAttempt& each : count.failures) {
    if (database_is_down || twist_ == Twist::fails_before) throw Failed();
    const auto row = rows.find(each.row.seq);
    if (row != rows.end() && row->second.id == each.row.id) {
      row->second.parked = each.park;
      row->second.attempts = std::max(row->second.attempts, each.attempts);
      if (row->second.attempts > failures_[each.row.id]) wrong(each.row.id + " has failed less often than counted");
    }
    if (twist_ == Twist::fails_after) throw Failed();  // a reply is lost: all are written again
  }
  machine_->counted();
}

void RelayWorld::perform(const job::Wait& wait) {
  if (wait.until <= now) return wrong("the relay waits for a time that has passed");
  if (wakes_at && *wakes_at <= wait.until) {
    now = *std::exchange(wakes_at, std::nullopt);
    machine_->woken();
  } else {
    now = wait.until;
  }
}

void RelayWorld::perform(const job::End&) {}

}  // namespace txinbox::test
