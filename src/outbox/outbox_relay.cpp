#include <txinbox/outbox_relay.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "base/process.hpp"
#include "outbox/relay_run.hpp"
#include "pool/pool_state.hpp"
#include "pool/session_provider.hpp"
#include "telemetry/listeners.hpp"
#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;

constexpr detail::EnumNames<PublishStatus, PublishStatus::postponed> status_names("confirmed", "failed", "rejected",
                                                                                  "postponed");

void require(bool condition, const char* what) {
  if (!condition) throw Error(ErrorCode::invalid_argument, what);
}

void check(const Publisher& publisher, const RelayOptions& options) {
  constexpr milliseconds least(1), longest = std::chrono::days(1);
  const auto in_range = [&](milliseconds time) { return time >= least && time <= longest; };
  require(static_cast<bool>(publisher), "the publisher is empty; give one that can be called");
  require(options.batch >= 1 && options.batch <= 10'000, "RelayOptions::batch must be from 1 to 10,000");
  require(in_range(options.poll) && in_range(options.idle_poll),
          "the polls of RelayOptions must be from 1 ms to a day");
  require(in_range(options.sweep), "RelayOptions::sweep must be from 1 ms to a day");
  require(options.lease >= milliseconds(100) && options.lease <= longest,
          "RelayOptions::lease must be from 100 ms to a day");
  require(options.max_attempts >= 0, "RelayOptions::max_attempts is negative; 0 never parks a message");
  require(in_range(options.initial_backoff) && in_range(options.max_backoff),
          "the backoffs of RelayOptions must be from 1 ms to a day");
  detail::check(options.listeners);
}

}  // namespace

class OutboxRelay::Impl {
 public:
  Impl(const Pool& pool, Publisher publisher, RelayOptions options)
      : source_(detail::PoolAccess::state(pool)),
        publisher_((check(publisher, options), std::move(publisher))),
        options_(std::move(options)),
        run_(source_, publisher_, options_),
        stops_with_(options_.stop, [this] { stop_.request_stop(); }),
        thread_([this] { run_.run(stop_.get_token(), [this](Clock::time_point until) { return wait(until); }); }) {}
  ~Impl() { stop_.request_stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void wake() noexcept {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    waiting_.notify_one();
  }

  /// False in a child of fork(): it has a copy of this object, without the thread.
  bool has_thread() const noexcept { return owner_.is_this_one(); }

 private:
  using Clock = std::chrono::steady_clock;

  /// Waits until this time or until `wake`. Returns whether `wake` was called.
  bool wait(Clock::time_point until) noexcept {
    std::unique_lock lock(mutex_);
    waiting_.wait_until(lock, stop_.get_token(), until, [this] { return woken_; });
    return std::exchange(woken_, false);
  }

  const detail::OwnProcess owner_;
  detail::SessionProvider source_;
  const Publisher publisher_;
  const RelayOptions options_;
  detail::RelayRun run_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any waiting_;
  bool woken_ = false;
  std::stop_callback<std::function<void()>> stops_with_;
  std::jthread thread_;  ///< Must be the last member: it uses the others.
};

std::string_view to_string(PublishStatus status) noexcept { return status_names[status]; }

OutboxRelay::OutboxRelay(Pool& pool, Publisher publisher, RelayOptions options)
    : impl_(std::make_unique<Impl>(pool, std::move(publisher), std::move(options))) {}

OutboxRelay::~OutboxRelay() {
  if (!impl_->has_thread()) (void)impl_.release();  // NOLINT(bugprone-unused-return-value): the parent's
}

void OutboxRelay::wake() noexcept {
  if (impl_->has_thread()) impl_->wake();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
