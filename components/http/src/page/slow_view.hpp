#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>
#include <txinbox/pool.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {

/// A view that can take seconds on large tables. It is read on a thread of its own while somebody looks at it, for at
/// most 2 % of the time. Those who look get the latest result.
///
/// @threads any number.
class SlowView {
 public:
  using Clock = std::chrono::steady_clock;
  using Read = std::function<nlohmann::ordered_json(Connection&)>;

  struct Times {
    std::chrono::milliseconds least_pause{0};   ///< Between two readings.
    std::chrono::milliseconds first_wait{200};  ///< How long `get` waits while there is no result.
  };

  SlowView(Pool& pool, const Times& times, Read read) : pool_(pool), times_(times), read_(std::move(read)) {}

  /// Waits until a reading that runs has ended.
  ~SlowView() = default;

  struct Result {
    nlohmann::ordered_json value = {};  ///< Null: there is none yet.
    std::chrono::seconds age{0};
    std::string error = {};  ///< Why the latest reading failed. Empty if it did not.
  };

  /// Returns the latest result, and begins another reading if it is time. It waits a moment for the result of that one,
  /// and for the first one.
  Result get();

  /// Something was changed: the next `get` begins a reading, whatever the latest one took.
  void expire();

 private:
  void read();

  Pool& pool_;
  const Times times_;
  const Read read_;
  std::mutex mutex_;
  std::condition_variable has_result_;
  nlohmann::ordered_json value_;
  std::string error_;
  Clock::time_point read_at_ = {};
  Clock::time_point next_ = {};
  bool is_reading_ = false;
  bool has_expired_ = false;  ///< Since the reading began.
  std::jthread thread_;       ///< The last member: it ends before the others are gone.
};

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
