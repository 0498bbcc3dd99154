#include <txinbox/http/client_connection.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace detail {

class ConnectionDeadline::Impl {
 public:
  using Clock = std::chrono::steady_clock;

  Impl() = default;
  ~Impl() {
    thread_.request_stop();
    thread_.join();
    drop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void opened(int socket) noexcept {
    const std::lock_guard lock(mutex_);
    drop();
    // A descriptor of its own: the client can close its descriptor at any time, and another thread can get this number.
    socket_ = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
    // After a shutdown, a connection attempt ends at once, and the first write fails.
    if (is_late_ || socket_ < 0) ::shutdown(socket, SHUT_RDWR);
  }

  void begin(Clock::time_point end) noexcept {
    const std::lock_guard lock(mutex_);
    end_ = end;
    is_late_ = false;
    is_active_ = true;
    if (end < wakes_at_) changed_.notify_one();
  }

  void end(bool is_open) noexcept {
    const std::lock_guard lock(mutex_);
    is_active_ = false;
    if (!is_open) drop();
  }

 private:
  void drop() noexcept {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (!is_active_ || is_late_) {
        wakes_at_ = Clock::time_point::max();
        changed_.wait(lock, stop, [this] { return is_active_ && !is_late_; });
      } else if (Clock::now() < end_) {
        // The thread wakes up at this time even if the request ends early. That is cheaper than a wake-up for each one.
        wakes_at_ = end_;
        changed_.wait_until(lock, stop, wakes_at_, [this] { return end_ < wakes_at_; });
      } else {
        is_late_ = true;
        if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  int socket_ = -1;                                        ///< The client's connection. -1: it has none.
  Clock::time_point end_{};                                ///< When the request must have ended.
  Clock::time_point wakes_at_ = Clock::time_point::max();  ///< When the thread wakes up.
  bool is_active_ = false;                                 ///< A request is running.
  bool is_late_ = false;                                   ///< The request's time is over.
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

ConnectionDeadline::ConnectionDeadline() : impl_(std::make_unique<Impl>()) {}
ConnectionDeadline::~ConnectionDeadline() = default;
void ConnectionDeadline::opened(int socket) noexcept { impl_->opened(socket); }
void ConnectionDeadline::begin(std::chrono::steady_clock::time_point end) noexcept { impl_->begin(end); }
void ConnectionDeadline::end(bool is_open) noexcept { impl_->end(is_open); }

}  // namespace detail
}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
