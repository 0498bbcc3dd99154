#include "sim/story.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

namespace txinbox::sim {

void Story::add(std::string_view key, std::string text) {
  constexpr std::size_t most = 100'000;
  if (!problem_.empty() && key != key_of_problem_) return;
  lines_.push_back({Threads::instance()->now(), std::string(key), std::move(text)});
  if (lines_.size() > most) lines_.pop_front();
}

void Story::fail(std::string_view key, std::string_view what) {
  if (!problem_.empty()) return;
  problem_ = fmt::format("{}{}{}", key, key.empty() ? "" : " ", what);
  key_of_problem_ = key;
  if (is_recorded_) add(key, problem_);
}

std::string Story::text() const {
  constexpr std::size_t most_of_each = 30;  // of the message, and of those without one
  std::vector<const Line*> chosen;
  std::size_t of_message = 0, others = 0;
  for (auto each = lines_.rbegin(); each != lines_.rend(); ++each) {
    const bool is_other = each->key.empty();
    if (!is_other && each->key != key_of_problem_) continue;
    if (++(is_other ? others : of_message) <= most_of_each) chosen.push_back(&*each);
  }
  std::ranges::reverse(chosen);
  std::string text;
  for (const Line* const each : chosen) {
    text += fmt::format("  {:>12.6f} s  {}\n", std::chrono::duration<double>(each->time).count(), each->text);
  }
  return text;
}

}  // namespace txinbox::sim
