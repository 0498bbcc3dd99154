#include "sim/workloads/eraser.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include <fmt/format.h>
#include <txinbox/operations.hpp>

#include "base/interruptible_sleep.hpp"

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

constexpr SimTime time_between_looks = 1s;
constexpr std::size_t most_of_erasure = 10;

/// A message is sent again within this time after its erasure has begun. `erase` waits for 30 seconds.
constexpr std::size_t longest_until_again = 80;

}  // namespace

void Eraser::work(const std::stop_token& stop) {
  while (detail::sleep_for(time_between_looks, stop)) {
    try {
      erase_some(stop);
    } catch (const std::exception& error) {
      world_.story.tell("", "the eraser gets {}", error.what());
    }
  }
}

/// An erasure that has failed is done again with the same keys.
void Eraser::erase_some(const std::stop_token& stop) {
  const bool begins = !world_.is_quiet && happens_within(time_between_looks, world_.plan.erase_every);
  if (keys_.empty() && begins) choose();
  if (keys_.empty()) return;
  const int failovers = world_.failovers;
  const ConnectionRef connection = world_.database.connect_caller();
  const std::vector<EraseOutcome> outcomes = erase(connection, consumer_, keys_, {.actor = "eraser"}, {.stop = stop});
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    world_.story.tell(keys_[i], "{} is {}", keys_[i], to_string(outcomes[i]));
    if (outcomes[i] == EraseOutcome::erased && failovers == world_.failovers) check_erased(keys_[i]);
  }
  keys_.clear();
}

/// Chooses messages that were consumed. The first ones are those that an operator has let run again.
void Eraser::choose() {
  choose_from("business_key IN (SELECT business_key FROM txinbox_audit)");
  choose_from("1");
  for (const std::string& key : keys_) {
    world_.story.tell(key, "the erasure of {} begins", key);
    again_.emplace(threads().now() + std::chrono::seconds(threads().any_of(longest_until_again)), key);
  }
}

void Eraser::choose_from(std::string_view condition) {
  for (const Values& row : world_.server.query(
           fmt::format("SELECT business_key FROM txinbox_consumed_message WHERE consumer = '{}' AND state = 'consumed' "
                       "AND {}",
                       consumer_, condition))) {
    const std::string& key = row[0].bytes;
    const bool is_erased = key.find(':') != std::string::npos;
    if (is_erased || keys_.size() >= most_of_erasure || !threads().happens(0.2)) continue;
    if (chosen_.insert(key).second) keys_.push_back(key);
  }
}

std::vector<std::string> Eraser::take_due() {
  const auto end = again_.upper_bound(threads().now());
  std::vector<std::string> due;
  for (auto each = again_.begin(); each != end; ++each) due.push_back(each->second);
  again_.erase(again_.begin(), end);
  return due;
}

/// The key is in no table any more.
void Eraser::check_erased(const std::string& key) {
  erased_.insert(key);
  for (const std::string_view table :
       std::array{"consumed_message", "failed_message", "conflicting_message", "audit"}) {
    const auto rows = world_.server.query(
        fmt::format("SELECT 1 FROM txinbox_{} WHERE consumer = '{}' AND business_key = '{}'", table, consumer_, key));
    if (!rows.empty()) world_.story.wrong(key, "is erased, and has a row of txinbox_{}", table);
  }
}

void Eraser::check_begin(const std::string& key, SimTime sent_at) {
  if (erased_.contains(key) && !world_.had_failover_since(sent_at))
    world_.story.wrong(key, "runs although it is erased");
}

}  // namespace txinbox::sim
