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

/// The duplicates that one consumer object has caught, and the greatest age of an original among them:
/// counted in memory, and written to `txinbox_consumer` now and then, for `status` and `doctor`. What a
/// crash takes away is missing there, and nothing else.
class DuplicateCounter {
 public:
  /// Both must outlive it.
  DuplicateCounter(SessionProvider& source, const std::string& consumer);

  /// Writes what is left, if a pool's connection is idle.
  ~DuplicateCounter();
  DuplicateCounter(const DuplicateCounter&) = delete;
  DuplicateCounter& operator=(const DuplicateCounter&) = delete;

  /// Counts the duplicates among the results of a delivery that has ended and given its session back. When
  /// it is time, it writes, by one short statement in a transaction of its own; an error does not count.
  void count(std::span<const Result> results) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  using Age = std::optional<std::chrono::milliseconds>;

  /// What is not yet in the table.
  struct Entry {
    std::int64_t duplicates = 0;
    Age age = {};  ///< The greatest; none where no age was known.
  };

  bool is_due() const;
  void put_back(const Entry&) noexcept;
  void write(const Entry&) noexcept;
  void write(backend::Session&, const Entry&) const;

  SessionProvider& source_;
  const std::string& consumer_;

  std::mutex mutex_;  ///< Not held while it writes.
  Entry pending_;
  Age told_age_;            ///< The greatest that it wrote, or tried to.
  Clock::time_point next_;  ///< When it writes again, unless something much older comes.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
