#include <txinbox/lease_consumer.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "consume/consumer_context.hpp"
#include "lease/lease_delivery.hpp"
#include "lease/lease_timer.hpp"
#include "pool/pool_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;

const LeaseOptions& checked(const LeaseOptions& options) {
  if (options.lease < milliseconds(1) || options.lease > std::chrono::days(24)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("LeaseOptions::lease is {} ms; it must be from 1 ms to 24 days", options.lease.count()));
  }
  if (options.wait < milliseconds::zero()) {
    throw Error(ErrorCode::invalid_argument, "LeaseOptions::wait must be at least zero");
  }
  if (options.heartbeat < milliseconds::zero() || options.heartbeat > options.lease / 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("LeaseOptions::heartbeat is {} ms; it must be from 0 (none) to half the lease",
                            options.heartbeat.count()));
  }
  return options;
}

TxConsumerOptions common_options(const LeaseOptions& options) {
  return {.retry = options.retry,
          .stop = options.stop,
          .observer = options.observer,
          .max_attempts = options.max_attempts,
          .is_transient = options.is_transient,
          .count_starts = options.count_starts,
          .keep_error_text = options.keep_error_text};
}

/// Returns the name that shows operators who holds a lease.
std::string host_and_process() {
  constexpr std::size_t most = 48;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::string name = host.data();
  name.resize(std::min(name.size(), most));
  std::ranges::replace_if(
      name, [](char c) { return c < '!' || c > '~'; }, '?');
  return fmt::format("{}:{}", name, ::getpid());
}

}  // namespace

class LeaseConsumer::Impl {
 public:
  Impl(Pool& pool, std::string consumer, LeaseOptions options)
      : options_(checked(options)),
        context_(detail::SessionProvider(detail::PoolAccess::state(pool)), std::move(consumer),
                 common_options(options_)) {}

  Result consume(const Message& message, const LeaseHandler& handler) {
    detail::refuse_empty(handler);
    return detail::LeaseDelivery(context_, options_, *timer_, holder_name_, message, handler).consume();
  }

 private:
  const LeaseOptions options_;
  const std::string holder_name_ = host_and_process();
  detail::ConsumerContext context_;
  const std::shared_ptr<detail::LeaseTimer> timer_ = detail::LeaseTimer::make();
};

LeaseConsumer::LeaseConsumer(Pool& pool, std::string consumer, LeaseOptions options)
    : impl_(std::make_unique<Impl>(pool, std::move(consumer), std::move(options))) {}

LeaseConsumer::LeaseConsumer(LeaseConsumer&&) noexcept = default;
LeaseConsumer& LeaseConsumer::operator=(LeaseConsumer&&) noexcept = default;
LeaseConsumer::~LeaseConsumer() = default;

Result LeaseConsumer::consume(const Message& message, const LeaseHandler& handler) {
  return impl_->consume(message, handler);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
