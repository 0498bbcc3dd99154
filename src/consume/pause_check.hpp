#pragma once

#include <chrono>
#include <mutex>
#include <stop_token>
#include <string>

#include <txinbox/version.hpp>

#include "pool/session_provider.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Whether an operator has paused a consumer. It asks the database at most once a second, and remembers the answer.
///
/// If the database has no table for pauses, or this user may not read it, nobody has paused the consumer. Then it looks
/// for the table once a minute.
///
/// @threads any; while one thread asks, the others wait for its answer.
class PauseCheck {
 public:
  /// Errors: those of `SessionProvider::borrow`, and errors of the database that are transient or of the environment.
  /// The next call asks again.
  bool is_paused(SessionProvider& source, const std::string& consumer, const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  bool has_table_ = false;
  bool is_paused_ = false;
  Clock::time_point next_{};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
