#include "consume/duplicate_counter.hpp"

#include <algorithm>
#include <utility>

#include "tables/consumer_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds write_every{10};

/// Whether an original is so old that its age must be written at once: it may be close to the retention.
bool is_much_older(milliseconds age, milliseconds known) {
  return age - known > std::chrono::minutes(1) && age - known > known / 10;
}

}  // namespace

DuplicateCounter::DuplicateCounter(SessionProvider& source, const std::string& consumer)
    : source_(source), consumer_(consumer), next_(Clock::now() + write_every) {}

DuplicateCounter::~DuplicateCounter() {
  // A caller's session may be inside a transaction now, so do not write there.
  if (source_.reconnects() && pending_.duplicates > 0) write(pending_);
}

void DuplicateCounter::count(std::span<const Result> results) noexcept {
  Entry entry;
  for (const Result& result : results) {
    if (result.outcome != Outcome::already_consumed) continue;
    ++entry.duplicates;
    if (result.age) entry.age = std::max(entry.age.value_or(milliseconds(0)), *result.age);
  }
  if (entry.duplicates == 0) return;
  {
    const std::lock_guard lock(mutex_);
    pending_.duplicates += entry.duplicates;
    pending_.age = std::max(pending_.age, entry.age);
    // If the cache of recent keys answered, do not use the database now: it may be unavailable.
    if (!entry.age || !is_due()) return;
    entry = std::exchange(pending_, {});
    told_age_ = std::max(told_age_, entry.age);
    next_ = Clock::now() + write_every;
  }
  write(entry);
}

bool DuplicateCounter::is_due() const {
  if (pending_.age && is_much_older(*pending_.age, told_age_.value_or(milliseconds(0)))) return true;
  return Clock::now() >= next_;
}

void DuplicateCounter::put_back(const Entry& entry) noexcept {
  const std::lock_guard lock(mutex_);
  pending_.duplicates += entry.duplicates;
  pending_.age = std::max(pending_.age, entry.age);
}

void DuplicateCounter::write(const Entry& entry) noexcept {
  try {
    auto session = source_.borrow_idle();
    if (session) {
      write(session->backend(), entry);
      session->mark_clean();
      return;
    }
    put_back(entry);
    const std::lock_guard lock(mutex_);
    next_ = Clock::now();  // the next duplicate may find an idle session
  } catch (...) {
    put_back(entry);
  }
}

void DuplicateCounter::write(backend::Session& session, const Entry& entry) const {
  ConsumerTable(session, consumer_).add_duplicates(entry.duplicates, entry.age);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
