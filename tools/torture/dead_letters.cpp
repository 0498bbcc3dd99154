#include "torture/dead_letters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <txinbox/source.hpp>

#include "torture/bad_deployment.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {
namespace {

std::string header(const RedriveMessage& message, std::string_view name) {
  const auto at = std::ranges::find(message.headers, name, &std::pair<std::string, std::string>::first);
  return at == message.headers.end() ? std::string() : at->second;
}

}  // namespace

void DeadLetters::add(const Arrival& parked) {
  if (keeps_payload(plan_.seed(), parked.key)) {
    ++tally_.kept_payloads;
    return;
  }
  ++tally_.added;
  Letter letter{.arrival = parked};
  const auto last = redrives_.find({parked.key, parked.copy});
  if (last != redrives_.end()) letter.redrive = last->second;
  letters_.emplace(++last_id_, std::move(letter));
  waiting_.push_back(last_id_);
}

std::vector<std::pair<std::string, std::string>> DeadLetters::headers_of(const Letter& letter) const {
  namespace names = dead_letter_header;
  std::vector<std::pair<std::string, std::string>> headers{
      {std::string(names::reason), "parked"},
      {std::string(names::error_class), "txinbox::torture::PlannedFailure"},
      {std::string(names::consumer), consumer_name},
      {std::string(names::key), Plan::business_key(letter.arrival.key)},
      {std::string(names::source), redrive_queue}};
  if (letter.arrival.redrives != 0) {
    headers.emplace_back(names::redrives, std::to_string(letter.arrival.redrives));
    headers.emplace_back(names::redrive, letter.redrive);
  }
  return headers;
}

std::vector<RedriveMessage> DeadLetters::take(unsigned holder, std::size_t most) {
  std::vector<RedriveMessage> taken;
  while (taken.size() < most && !waiting_.empty()) {
    const std::uint64_t id = waiting_.front();
    waiting_.pop_front();
    Letter& letter = letters_.at(id);
    letter.holder = holder;
    letter.is_published_by_holder = false;
    taken.push_back({.id = id, .body = payload_of(letter.arrival), .headers = headers_of(letter)});
  }
  return taken;
}

std::optional<Arrival> DeadLetters::publish(unsigned holder, const RedriveMessage& message) {
  if (message.id == 0) return publish_payload(message);
  const auto at = letters_.find(message.id);
  if (at == letters_.end() || at->second.holder != holder) {
    add_imbalance(message.body, "a message was published that was no dead letter of the operator", "none",
                  fmt::format("dead letter {}", message.id));
    return std::nullopt;
  }
  Letter& letter = at->second;
  const std::string redrives = std::to_string(letter.arrival.redrives + 1);
  const std::string found = header(message, dead_letter_header::redrives);
  if (message.body != payload_of(letter.arrival) || message.destination != redrive_queue || found != redrives) {
    add_imbalance(Plan::business_key(letter.arrival.key), "the message that was published again",
                  fmt::format("'{}' to {}, redrive {}", payload_of(letter.arrival), redrive_queue, redrives),
                  fmt::format("'{}' to {}, redrive {}", message.body, message.destination, found));
  }
  if (!letter.is_refused && is_refused_at_first(plan_.seed(), letter.arrival.key)) {
    letter.is_refused = true;
    ++tally_.refused;
    return std::nullopt;
  }
  ++(letter.is_published ? tally_.published_again : tally_.published);
  letter.is_published = letter.is_published_by_holder = true;
  redrives_[{letter.arrival.key, letter.arrival.copy}] = header(message, dead_letter_header::redrive);
  Arrival again = letter.arrival;
  ++again.tries;
  ++again.redrives;
  return again;
}

std::optional<Arrival> DeadLetters::publish_payload(const RedriveMessage& message) {
  auto again = read_arrival(message.body);
  if (!again || !keeps_payload(plan_.seed(), again->key)) {
    add_imbalance(message.body, "a payload was published that the database did not keep", "none", message.destination);
    return std::nullopt;
  }
  ++tally_.from_outbox;
  ++again->tries;
  ++again->redrives;
  return again;
}

void DeadLetters::acknowledge(unsigned holder, std::uint64_t id) {
  const auto at = letters_.find(id);
  if (at == letters_.end() || at->second.holder != holder) return;  // it has given the dead letter back
  if (!at->second.is_published) {
    add_imbalance(Plan::business_key(at->second.arrival.key), "a dead letter was acknowledged and not published",
                  "published", fmt::format("dead letter {}", id));
  }
  letters_.erase(at);
}

bool DeadLetters::has_unacknowledged(unsigned holder) const {
  return std::ranges::any_of(letters_, [holder](const auto& each) {
    return each.second.holder == holder && each.second.is_published_by_holder;
  });
}

void DeadLetters::give_back(unsigned holder) {
  for (auto& [id, letter] : letters_) {
    if (letter.holder != holder) continue;
    letter.holder = 0;
    waiting_.push_back(id);
  }
}

void DeadLetters::lost(unsigned holder) {
  if (has_unacknowledged(holder)) ++tally_.kills_between;
  give_back(holder);
}

void DeadLetters::add_imbalance(std::string subject, std::string what, std::string expected, std::string found) {
  wrong_.push_back({std::move(subject), std::move(what), std::move(expected), std::move(found)});
}

}  // namespace txinbox::torture
