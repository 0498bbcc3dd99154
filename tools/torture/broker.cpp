#include "torture/broker.hpp"

#include <algorithm>
#include <utility>

namespace txinbox::torture {
namespace {

using std::chrono::milliseconds;

// From this number on, a copy's number belongs to a redelivery of an acknowledged message.
constexpr unsigned first_late_copy = 100;

// The longest pause between an unplanned failure and the next delivery. Without it, an outage would be a busy loop.
constexpr unsigned longest_pause_ms = 200;

constexpr unsigned latest_redelivery_ms = 2'000;

std::string text(Outcome outcome) { return std::string(to_string(outcome)); }

bool is_late(const Arrival& arrival) { return arrival.copy >= first_late_copy; }

}  // namespace

void Broker::send(std::uint64_t keys_in_all) {
  while (outstanding_ < window_ && keys_.size() < keys_in_all) {
    const std::uint64_t key = keys_.size();
    const auto copies = static_cast<unsigned>(plan_.key(key).copies);
    keys_.push_back({.outstanding = copies});
    outstanding_ += copies;
    never_settled_ += copies;
    for (unsigned copy = 0; copy < copies; ++copy) waiting_.push_back({.key = key, .copy = copy});
  }
}

std::vector<Arrival> Broker::take(std::size_t most, Time now) {
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    waiting_.push_back(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
  }
  std::vector<Arrival> taken;
  while (taken.size() < most && !waiting_.empty()) {
    auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(dice_.below(waiting_.size()));
    // Half of the time this takes another copy of the last key, so that several workers process one key at once.
    if (dice_.chance(5'000)) {
      const auto same =
          std::find_if(waiting_.begin(), waiting_.end(), [this](const Arrival& a) { return a.key == last_key_; });
      if (same != waiting_.end()) at = same;
    }
    last_key_ = at->key;
    taken.push_back(*at);
    *at = waiting_.back();
    waiting_.pop_back();
  }
  unanswered_ += taken.size();
  tally_.deliveries += taken.size();
  return taken;
}

void Broker::close() {
  if (closed_) return;
  closed_ = true;
  for (const auto& [time, arrival] : delayed_) waiting_.push_back(arrival);
  delayed_.clear();
}

void Broker::answered(const Arrival& arrival, const Answer& answer, Time now) {
  --unanswered_;
  if (answer.failure == Failure::by_handler) ++tally_.handler_failures;
  if (answer.failure == Failure::unexpected) ++tally_.unexpected_failures;
  if (answer.outcome == Outcome::in_progress) ++tally_.in_progress;
  switch (answer.action) {
    case Action::acknowledge:
      return acknowledged(arrival, answer, now);
    case Action::dead_letter:
      return dead_lettered(arrival, answer);
    case Action::redeliver:
    case Action::stop:
      break;
  }
  Arrival again = arrival;
  ++again.tries;
  if (answer.failure == Failure::transient || answer.failure == Failure::unexpected) {
    delayed_.emplace(now + milliseconds(dice_.below(longest_pause_ms)), again);
  } else if (answer.outcome == Outcome::in_progress) {
    delayed_.emplace(now + answer.retry_after, again);
  } else {
    waiting_.push_back(again);
  }
}

void Broker::lost(const Arrival& arrival) {
  --unanswered_;
  ++tally_.lost_with_worker;
  Arrival again = arrival;
  ++again.tries;
  waiting_.push_back(again);
}

void Broker::send_again(const Arrival& arrival) {
  ++keys_[arrival.key].outstanding;
  ++outstanding_;
  waiting_.push_back(arrival);
}

void Broker::acknowledged(const Arrival& arrival, const Answer& answer, Time now) {
  ++tally_.acknowledged;
  KeyLedger& key = keys_[arrival.key];
  if (answer.outcome == Outcome::already_consumed) ++tally_.duplicates;
  if (answer.outcome == Outcome::consumed && ++key.consumed > 1) {
    add_imbalance(arrival, "was reported as consumed more than once", "1", std::to_string(key.consumed));
  }
  if (arrival.is_altered) {
    add_imbalance(arrival, "different content was taken for a duplicate", text(Outcome::conflict),
                  text(answer.outcome));
  }
  key.is_acknowledged = true;
  check_stored(arrival, answer);
  settle(arrival);

  // Brokers redeliver acknowledged messages when the acknowledgement is lost or an offset is reset.
  if (is_late(arrival) || closed_ || !dice_.chance(1'000)) return;
  Arrival late{.key = arrival.key, .copy = first_late_copy + arrival.copy};
  late.is_altered = plan_.key(arrival.key).has_content && dice_.chance(2'500);
  delayed_.emplace(now + milliseconds(dice_.below(latest_redelivery_ms)), late);
}

void Broker::dead_lettered(const Arrival& arrival, const Answer& answer) {
  if (answer.outcome == Outcome::conflict && arrival.is_altered) {
    ++tally_.conflicts;
  } else if (letters_ != nullptr && answer.outcome == Outcome::parked && !is_late(arrival)) {
    letters_->add(arrival);
  } else {
    add_imbalance(arrival, "became a dead letter", text(Outcome::already_consumed), text(answer.outcome));
  }
  settle(arrival);
}

void Broker::settle(const Arrival& arrival) {
  if (is_late(arrival)) return;
  if (arrival.redrives == 0) --never_settled_;
  --keys_[arrival.key].outstanding;
  --outstanding_;
}

void Broker::check_stored(const Arrival& arrival, const Answer& answer) {
  KeyLedger& key = keys_[arrival.key];
  const bool stores = plan_.key(arrival.key).stores;
  if (stores && !key.stored && answer.stored) {
    key.stored = answer.stored;
  } else if (stores ? answer.stored != key.stored || !answer.stored : answer.stored.has_value()) {
    add_imbalance(arrival, "a different stored result was reported", key.stored.value_or(stores ? "one" : "none"),
                  answer.stored.value_or("none"));
  }
}

void Broker::add_imbalance(const Arrival& arrival, std::string what, std::string expected, std::string found) {
  wrong_.push_back({plan_.key(arrival.key).business_key, std::move(what), std::move(expected), std::move(found)});
}

}  // namespace txinbox::torture
