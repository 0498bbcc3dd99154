#include "run/breaker.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

bool is_aside(const EntryPtr& entry) { return entry->state == Entry::State::set_aside && !entry->is_lost; }

/// A sequence is a new object after it had no messages.
bool is_same(const Sequence& one, const Sequence& other) { return one.has_order() && one.id == other.id; }

/// Half of the messages that `run` holds may fail before the breaker trips. If these are only a few, they show nothing.
std::size_t limit_of(const BreakerOptions& options, int max_attempts, std::size_t most_held) {
  constexpr std::size_t least = 8;
  const std::size_t limit = std::min(options.failures, most_held / 2);
  return max_attempts == 0 || limit < std::min(options.failures, least) ? 0 : limit;
}

}  // namespace

Breaker::Breaker(const BreakerOptions& options, int max_attempts, std::size_t most_held)
    : options_(options),
      max_attempts_(static_cast<std::size_t>(max_attempts)),
      limit_(limit_of(options, max_attempts, most_held)),
      pause_(options.pause) {}

void Breaker::failed(const EntryPtr& entry, const std::exception_ptr& error, Time now) {
  works_ = false;
  if (limit_ == 0) return;
  failed_keys_.insert(entry->message.business_key);
  latest_sign_ = now;
  error_ = error;
  if (!entry->counts_later || entry->undecided.size() >= max_attempts_) return;
  if (entry->undecided.empty()) undecided_.push_back(entry);
  entry->undecided.push_back(error);
}

bool Breaker::sets_aside(const Entry& entry, Time now) const noexcept {
  if (limit_ == 0 || entry.undecided.size() < max_attempts_) return false;
  return !tripped_ || is_in_round(now);
}

bool Breaker::works(const Entry& consumed) {
  works_ = true;
  failed_keys_.clear();
  error_ = nullptr;
  pause_ = options_.pause;
  for (EntryPtr& entry : std::exchange(undecided_, {})) {
    const bool was_passed = entry->state == Entry::State::set_aside && is_same(*entry->sequence, *consumed.sequence);
    (tripped_ && !was_passed ? forgiven_ : decided_).push_back(std::move(entry));
  }
  return std::exchange(tripped_, false);
}

void Breaker::trip(Time now) noexcept {
  tripped_ = true;
  in_round_ = false;
  failed_keys_.clear();
  resumes_at_ = now + pause_;
}

/// A handler can be repaired while the probes of a round fail. So a round is shorter than the pause.
bool Breaker::is_in_round(Time now) const noexcept {
  const std::chrono::milliseconds longest = std::max<std::chrono::milliseconds>(std::chrono::seconds(1), pause_ / 4);
  return now - round_began_ <= longest;
}

void Breaker::forget(const Entry& entry) {
  std::erase_if(undecided_, [&](const EntryPtr& each) { return each.get() == &entry; });
}

void Breaker::forget_lost() {
  for (auto* list : {&undecided_, &decided_}) {
    std::erase_if(*list, [](const EntryPtr& each) { return each->is_lost; });
  }
}

void Breaker::begin_probe(Time now) noexcept {
  if (std::exchange(in_round_, true)) return;
  round_began_ = now;
  probes_ = 0;
}

bool Breaker::goes_on(Time now) noexcept { return ++probes_ < limit_ * max_attempts_ && is_in_round(now); }

void Breaker::end_round(Time now) noexcept {
  in_round_ = false;
  pause_ = std::min(pause_ * 2, options_.max_pause);
  resumes_at_ = now + pause_;
}

std::vector<EntryPtr> Breaker::take_decided() {
  const auto is_running = [](const EntryPtr& entry) { return entry->state == Entry::State::running; };
  const auto idle = std::stable_partition(decided_.begin(), decided_.end(), is_running);
  std::vector<EntryPtr> taken(idle, decided_.end());
  decided_.erase(idle, decided_.end());
  return taken;
}

std::vector<EntryPtr> Breaker::set_aside() const {
  std::vector<EntryPtr> found;
  std::ranges::copy_if(undecided_, std::back_inserter(found), is_aside);
  return found;
}

std::vector<EntryPtr> Breaker::take_set_aside() {
  std::vector<EntryPtr> taken = set_aside();
  std::erase_if(undecided_, is_aside);
  return taken;
}

bool Breaker::has_set_aside() const noexcept { return std::ranges::any_of(undecided_, is_aside); }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
