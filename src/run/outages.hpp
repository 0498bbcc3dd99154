#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>

#include <txinbox/version.hpp>

#include "run/backoff.hpp"
#include "run/entry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Decides what an error means that looks like an outage. There are two possible reasons: the database is away, or one
/// of the messages of the job causes the error. These steps find out which it is:
/// - Everything waits, and then the messages of the job run alone.
/// - A message meets the error again, and a job that began after its first error has consumed a message. Then the
///   message is the reason: it waits as a message that failed, and the others do not wait.
/// - Another message is consumed after this, too, and no other job met an outage between the beginning of the attempt
///   and the next attempt. Then the attempt counts as a failure of the message: `Entry::uncounted`.
///
/// @threads one at a time.
class Outages {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `backoff` makes the waits, and must outlive this object.
  explicit Outages(Backoff& backoff) noexcept : backoff_(backoff) {}

  /// Nothing may begin before this time.
  Time blocked_until() const noexcept { return blocked_until_; }

  /// A job begins. If one of its messages has met such an error, this decides whether the error counts as its failure.
  void begins(const Job&);

  /// A delivery shows that the database is available. So the waits are short again.
  void database_answers() noexcept { outages_ = 0; }

  /// A delivery has consumed this message.
  void consumed(const Entry&) noexcept;

  /// Whether the message of the job, which is alone, has met the error before, and a job that began after this has
  /// succeeded.
  bool is_reason(const Job&) const noexcept;

  /// The only message of the job is the reason of this error.
  void suspect(const Job&, const std::exception_ptr& error) const;

  /// Makes all messages wait until the same time, and then the messages of this job run alone. Each further outage
  /// makes the wait longer. Returns the wait; none if another worker has already reported the outage.
  std::optional<std::chrono::milliseconds> met_by(const Job&, Time now);

 private:
  void prove(Entry&) const;

  Backoff& backoff_;
  std::uint64_t jobs_ = 0;               ///< How many jobs have begun. It numbers them.
  std::uint64_t latest_successful_ = 0;  ///< The greatest number of a job that has consumed a message.
  std::uint64_t seen_ = 0;               ///< How often a job met an outage of which it is not the reason.
  int outages_ = 0;                      ///< How often everything has waited since a delivery had an answer.
  Time blocked_until_ = {};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
