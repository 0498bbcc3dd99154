#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include <txinbox/result.hpp>

#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Counts the duplicates of one consumer object, and keeps the greatest age of an original among them.
///
/// It counts in memory, and writes to `txinbox_consumer` from time to time, for `status` and `doctor`. A crash loses
/// only the counts that are not yet written.
class DuplicateCounter {
 public:
  /// Both arguments must outlive the counter.
  DuplicateCounter(SessionProvider& source, const std::string& consumer);

  /// Writes the remaining counts, if a connection of the pool is idle.
  ~DuplicateCounter();
  DuplicateCounter(const DuplicateCounter&) = delete;
  DuplicateCounter& operator=(const DuplicateCounter&) = delete;

  /// Counts the duplicates among the results of a delivery that has ended and given its session back.
  ///
  /// From time to time it writes the counts, with one short statement in a transaction of its own. It ignores errors.
  void count(std::span<const Result> results) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Age = std::optional<std::chrono::milliseconds>;

  /// Counts that are not yet in the table.
  struct Entry {
    std::int64_t duplicates = 0;
    Age age = {};  ///< The greatest age; none if no age was known.
  };

  bool is_due() const;
  void put_back(const Entry&) noexcept;
  void write(const Entry&) noexcept;
  void write(backend::Session&, const Entry&) const;

  SessionProvider& source_;
  const std::string& consumer_;

  std::mutex mutex_;  ///< It is not locked during a write.
  Entry pending_;
  Age told_age_;            ///< The greatest age that was written, or that it tried to write.
  Clock::time_point next_;  ///< The time of the next write, unless a much older original comes first.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
