#include <txinbox/lease_consumer.hpp>

#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "backend/connection_access.hpp"
#include "base/own_process.hpp"
#include "lease/database_lease_store.hpp"
#include "lease/lease_delivery.hpp"
#include "lease/lease_timer.hpp"
#include "lease/store_leases.hpp"
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

LeaseOptions without_heartbeat(LeaseOptions options) {
  if (options.heartbeat == milliseconds::zero()) return options;
  throw Error(ErrorCode::invalid_argument,
              "LeaseOptions::heartbeat needs a pool: it renews the lease on a thread and a connection of its own; call "
              "Lease::renew in the handler instead");
}

}  // namespace

class LeaseConsumer::Impl {
 public:
  Impl(detail::SessionProvider source, std::string consumer, LeaseOptions options)
      : options_(checked(options)),
        leases_(std::make_unique<detail::DatabaseLeaseStore>(std::move(source), std::move(consumer), options_)) {}

  Impl(std::shared_ptr<LeaseStore> store, std::string consumer, LeaseOptions options)
      : options_(checked(options)),
        leases_(std::make_unique<detail::StoreLeases>(std::move(store), std::move(consumer), options_)) {}

  Result consume(const Message& message, const LeaseHandler& handler) {
    detail::refuse_empty(handler);
    if (!owner_.is_this_one()) {
      throw Error(ErrorCode::forked,
                  "the consumer was created before fork(), and the thread that ends its leases is the parent's; create "
                  "another consumer in the child");
    }
    return detail::LeaseDelivery(leases_->policy(), options_, *leases_, *timer_, message, handler).consume();
  }

  std::string_view name() const noexcept { return leases_->policy().consumer; }
  const LeaseOptions& options() const noexcept { return options_; }

 private:
  const detail::OwnProcess owner_;
  const LeaseOptions options_;
  const std::unique_ptr<detail::LeaseProvider> leases_;
  const std::shared_ptr<detail::LeaseTimer> timer_ = detail::LeaseTimer::make();
};

LeaseConsumer::LeaseConsumer(Pool& pool, std::string consumer, LeaseOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::PoolAccess::state(pool)), std::move(consumer),
                                   std::move(options))) {}

LeaseConsumer::LeaseConsumer(ConnectionRef connection, std::string consumer, LeaseOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::ConnectionAccess::of(connection)),
                                   std::move(consumer), without_heartbeat(std::move(options)))) {}

LeaseConsumer::LeaseConsumer(std::shared_ptr<LeaseStore> store, std::string consumer, LeaseOptions options)
    : impl_(std::make_unique<Impl>(std::move(store), std::move(consumer), std::move(options))) {}

LeaseConsumer::LeaseConsumer(LeaseConsumer&&) noexcept = default;
LeaseConsumer& LeaseConsumer::operator=(LeaseConsumer&&) noexcept = default;
LeaseConsumer::~LeaseConsumer() = default;

std::string_view LeaseConsumer::name() const noexcept { return impl_->name(); }

const LeaseOptions& LeaseConsumer::options() const noexcept { return impl_->options(); }

Result LeaseConsumer::consume(const Message& message, const LeaseHandler& handler) {
  return impl_->consume(message, handler);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
