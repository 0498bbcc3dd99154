#include "consume/duplicate_counter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds write_every{10};

/// Whether an original of this age is news that cannot wait: retention may be near it.
bool is_much_older(milliseconds age, milliseconds known) {
  return age - known > std::chrono::minutes(1) && age - known > known / 10;
}

}  // namespace

DuplicateCounter::DuplicateCounter(SessionProvider& source, const std::string& consumer)
    : source_(source), consumer_(consumer), next_(Clock::now() + write_every) {}

DuplicateCounter::~DuplicateCounter() {
  // A session of the caller's may be inside a transaction by now.
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
    // Where a memory answered, the database need not be there: no time is spent on it.
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
    next_ = Clock::now();  // the next duplicate may find one
  } catch (...) {
    put_back(entry);
  }
}

void DuplicateCounter::write(backend::Session& session, const Entry& entry) const {
  const backend::Dialect& dialect = session.dialect();
  const std::string table = dialect.table(backend::consumer_table);
  const std::string consumer = dialect.text(consumer_);
  std::string older;  // the time first: MariaDB and MySQL assign from left to right
  if (entry.age) {
    older = fmt::format(
        ", oldest_duplicate_at = CASE WHEN coalesce(oldest_duplicate, -1) < {0} THEN {1} ELSE oldest_duplicate_at END"
        ", oldest_duplicate = CASE WHEN coalesce(oldest_duplicate, -1) < {0} THEN {0} ELSE oldest_duplicate END",
        entry.age->count(), dialect.now());
  }
  const std::string update = fmt::format("UPDATE {} SET duplicates = duplicates + {}{} WHERE consumer = {}", table,
                                         entry.duplicates, older, consumer);
  const std::string insert = fmt::format(
      "INSERT INTO {} (consumer, duplicates, oldest_duplicate, oldest_duplicate_at) VALUES ({}, {}, {}, {})", table,
      consumer, entry.duplicates, entry.age ? std::to_string(entry.age->count()) : "NULL",
      entry.age ? dialect.now() : "NULL");
  backend::change_or_insert(session, update, insert);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
