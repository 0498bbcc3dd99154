#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace txinbox::cli {

/// Says on standard error that a call of the database takes long, for example because another session holds a lock. It
/// says so after 5 s, 10 s, 20 s and so on.
class WaitNotice {
 public:
  /// Starts a thread, which writes.
  WaitNotice() = default;
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;

  /// A call of the database, from the constructor to the destructor. One at a time.
  class Call {
   public:
    explicit Call(WaitNotice& notice) : notice_(notice) { notice_.set(Clock::now()); }
    ~Call() { notice_.set(std::nullopt); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    WaitNotice& notice_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  void set(std::optional<Clock::time_point> since);
  void watch(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Clock::time_point> since_;  ///< When the current call began. None: there is no call.
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};
};

}  // namespace txinbox::cli
