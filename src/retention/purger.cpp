#include <txinbox/retention.hpp>

#include <algorithm>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "base/interruptible_sleep.hpp"
#include "base/process.hpp"
#include "pool/pool_state.hpp"
#include "pool/session_provider.hpp"
#include "retention/purge_run.hpp"
#include "telemetry/listeners.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_first_wait{std::chrono::minutes(1)};

milliseconds random_between(milliseconds least, milliseconds most) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<milliseconds::rep>(least.count(), most.count())(random));
}

void check(std::chrono::seconds older_than, const PurgerOptions& options) {
  detail::check_age("older_than", older_than);
  const std::chrono::seconds none{0};
  if (options.failed_older_than != none) {
    detail::check_age("PurgerOptions::failed_older_than", options.failed_older_than);
  }
  if (options.conflicts_older_than != none) {
    detail::check_age("PurgerOptions::conflicts_older_than", options.conflicts_older_than);
  }
  if (options.interval < milliseconds(1) || options.interval > std::chrono::days(365)) {
    throw Error(ErrorCode::invalid_argument, "PurgerOptions::interval must be from 1 ms to a year");
  }
  if (options.purge.what != Purgeable::consumed || options.purge.dry_run) {
    throw Error(ErrorCode::invalid_argument,
                "PurgerOptions::purge has `what` or `dry_run`; leave them out, and set failed_older_than or "
                "conflicts_older_than for other rows");
  }
  detail::check(options.purge);
}

}  // namespace

class Purger::Impl {
 public:
  Impl(const Pool& pool, std::chrono::seconds older_than, PurgerOptions options)
      : source_(detail::PoolAccess::state(pool)),
        older_than_(older_than),
        options_((check(older_than, options), std::move(options))),
        stops_with_(std::exchange(options_.purge.stop, stop_.get_token()), [this] { stop_.request_stop(); }),
        thread_([this] { run(); }) {}
  ~Impl() { stop_.request_stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// False in a child of fork(): it has a copy of this object, without the thread.
  bool has_thread() const noexcept { return owner_.is_this_one(); }

 private:
  void run() noexcept {
    milliseconds wait = random_between(milliseconds(0), std::min(options_.interval, longest_first_wait));
    while (detail::sleep_for(wait, options_.purge.stop)) {
      purge(Purgeable::consumed, older_than_);
      purge(Purgeable::failed, options_.failed_older_than);
      purge(Purgeable::conflicts, options_.conflicts_older_than);
      wait = random_between(options_.interval / 2, options_.interval + options_.interval / 2);
    }
  }

  void purge(Purgeable what, std::chrono::seconds older_than) noexcept {
    if (older_than == std::chrono::seconds(0) || options_.purge.stop.stop_requested()) return;
    const auto begin = std::chrono::steady_clock::now();
    try {
      PurgeOptions options = options_.purge;
      options.what = what;
      detail::PurgeRun(source_, older_than, options).run();
    } catch (...) {
      if (!options_.purge.stop.stop_requested()) {
        detail::notify(options_.purge.listeners, {.type = EventType::failed,
                                                  .consumer = options_.purge.consumer,
                                                  .duration = std::chrono::steady_clock::now() - begin,
                                                  .error = std::current_exception()});
      }
    }
  }

  const detail::OwnProcess owner_;
  detail::SessionProvider source_;
  const std::chrono::seconds older_than_;
  std::stop_source stop_;
  PurgerOptions options_;
  std::stop_callback<std::function<void()>> stops_with_;
  std::jthread thread_;  ///< Must be the last member: it uses the others.
};

Purger::Purger(Pool& pool, std::chrono::seconds older_than, PurgerOptions options)
    : impl_(std::make_unique<Impl>(pool, older_than, std::move(options))) {}

Purger::Purger(Purger&&) noexcept = default;

Purger& Purger::operator=(Purger&& other) noexcept {
  const Purger ended(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Purger::~Purger() {
  if (impl_ && !impl_->has_thread()) (void)impl_.release();  // NOLINT(bugprone-unused-return-value): the parent's
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
