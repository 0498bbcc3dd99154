#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include <txinbox/retention.hpp>
#include <txinbox/version.hpp>

#include "backend/failure.hpp"
#include "base/retry_schedule.hpp"
#include "pool/session_provider.hpp"
#include "retention/purge_target.hpp"
#include "retention/purge_throttle.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// These functions check the arguments of a purge. `name` is the name of `older_than` in the error text.
///
/// Errors: as `purge`.
void check_age(std::string_view name, std::chrono::seconds older_than);
void check(const PurgeOptions&);

/// One purge. It borrows a session for each batch, and gives it back during the pause.
class PurgeRun {
 public:
  /// The options must have been checked. They must outlive the run.
  PurgeRun(SessionProvider&, std::chrono::seconds older_than, const PurgeOptions&);

  /// Returns how many rows were removed.
  std::size_t run();

 private:
  using Clock = std::chrono::steady_clock;

  void purge_all();
  bool purge_batch(std::size_t target);
  bool is_over() const;
  std::chrono::milliseconds elapsed() const;
  void rest(std::chrono::nanoseconds) const;
  bool may_run_again(const Failure&);
  void record();
  void write_audit(std::string_view end_of_action);
  bool is_known(backend::Session&) const;
  void notify(Event) const noexcept;

  SessionProvider& source_;
  const std::chrono::seconds older_than_;
  const PurgeOptions& options_;
  PurgeThrottle throttle_;
  RetrySchedule retry_;
  const Clock::time_point start_ = Clock::now();
  std::string reached_;  ///< Where the last batch of the current target ended.
  std::size_t removed_ = 0;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
