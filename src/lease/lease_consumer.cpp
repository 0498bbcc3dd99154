#include <txinbox/lease_consumer.hpp>

#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "backend/connection_access.hpp"
#include "base/process.hpp"
#include "lease/database_lease_store.hpp"
#include "lease/lease_consumer_access.hpp"
#include "lease/lease_delivery.hpp"
#include "lease/lease_timer.hpp"
#include "lease/store_leases.hpp"
#include "pool/pool_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using std::chrono::milliseconds;

const LeaseTerms& checked(const LeaseTerms& terms) {
  if (terms.length < milliseconds(1) || terms.length > std::chrono::days(24)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("LeaseTerms::length is {} ms; it must be from 1 ms to 24 days", terms.length.count()));
  }
  if (terms.heartbeat < milliseconds::zero() || terms.heartbeat > terms.length / 2) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("LeaseTerms::heartbeat is {} ms; it must be from 0 (none) to half the lease",
                            terms.heartbeat.count()));
  }
  return terms;
}

LeaseTerms without_heartbeat(LeaseTerms terms) {
  if (terms.heartbeat == milliseconds::zero()) return terms;
  throw Error(ErrorCode::invalid_argument,
              "LeaseTerms::heartbeat needs a pool: it renews the lease on a thread and a connection of its own; call "
              "Lease::renew in the handler instead");
}

ConsumerOptions without_recent_keys(ConsumerOptions options) {
  if (options.recent_keys.capacity == 0) return options;
  throw Error(ErrorCode::invalid_argument, "a LeaseConsumer has no cache of recent keys; leave recent_keys at zero");
}

}  // namespace

class LeaseConsumer::Impl {
 public:
  Impl(detail::SessionProvider source, std::string consumer, LeaseTerms terms, ConsumerOptions options)
      : terms_(checked(terms)),
        leases_(std::make_unique<detail::DatabaseLeaseStore>(std::move(source), std::move(consumer), terms_.length,
                                                             without_recent_keys(std::move(options)))) {}

  Impl(std::shared_ptr<LeaseStore> store, std::string consumer, LeaseTerms terms, ConsumerOptions options)
      : terms_(checked(terms)),
        leases_(std::make_unique<detail::StoreLeases>(std::move(store), std::move(consumer), terms_.length,
                                                      without_recent_keys(std::move(options)))) {}

  Result consume(const Message& message, const LeaseHandler& handler, detail::Counting counting) {
    detail::refuse_empty(handler);
    if (!owner_.is_this_one()) {
      throw Error(ErrorCode::forked,
                  "the consumer was created before fork(), and the thread that ends its leases is the parent's; create "
                  "another consumer in the child");
    }
    return detail::LeaseDelivery(terms_, *leases_, *timer_, message, handler, counting).consume();
  }

  bool counts(const std::exception_ptr& error) const {
    return leases_->policy().counts(detail::Failure(error), detail::Counting::at_once);
  }

  bool is_paused() { return leases_->is_paused(); }
  bool is_parked(const Message& message) { return leases_->is_parked(message); }
  std::string_view name() const noexcept { return leases_->policy().consumer; }
  const ConsumerOptions& options() const noexcept { return leases_->policy().options; }
  const LeaseTerms& terms() const noexcept { return terms_; }

 private:
  const detail::OwnProcess owner_;
  const LeaseTerms terms_;
  const std::unique_ptr<detail::LeaseProvider> leases_;
  const std::shared_ptr<detail::LeaseTimer> timer_ = detail::LeaseTimer::make();
};

LeaseConsumer::LeaseConsumer(Pool& pool, std::string consumer, LeaseTerms terms, ConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::PoolAccess::state(pool)), std::move(consumer), terms,
                                   std::move(options))) {}

LeaseConsumer::LeaseConsumer(ConnectionRef connection, std::string consumer, LeaseTerms terms, ConsumerOptions options)
    : impl_(std::make_unique<Impl>(detail::SessionProvider(detail::ConnectionAccess::of(connection)),
                                   std::move(consumer), without_heartbeat(terms), std::move(options))) {}

LeaseConsumer::LeaseConsumer(std::shared_ptr<LeaseStore> store, std::string consumer, LeaseTerms terms,
                             ConsumerOptions options)
    : impl_(std::make_unique<Impl>(std::move(store), std::move(consumer), terms, std::move(options))) {}

LeaseConsumer::LeaseConsumer(LeaseConsumer&&) noexcept = default;
LeaseConsumer& LeaseConsumer::operator=(LeaseConsumer&&) noexcept = default;
LeaseConsumer::~LeaseConsumer() = default;

std::string_view LeaseConsumer::name() const noexcept { return impl_->name(); }

const ConsumerOptions& LeaseConsumer::options() const noexcept { return impl_->options(); }

const LeaseTerms& LeaseConsumer::terms() const noexcept { return impl_->terms(); }

Result LeaseConsumer::consume(const Message& message, const LeaseHandler& handler) {
  return impl_->consume(message, handler, detail::Counting::at_once);
}

Result detail::LeaseConsumerAccess::consume(LeaseConsumer& consumer, const Message& message,
                                            const LeaseHandler& handler, Counting counting) {
  return consumer.impl_->consume(message, handler, counting);
}

bool detail::LeaseConsumerAccess::is_paused(LeaseConsumer& consumer) { return consumer.impl_->is_paused(); }

bool detail::LeaseConsumerAccess::is_parked(LeaseConsumer& consumer, const Message& message) {
  return consumer.impl_->is_parked(message);
}

bool detail::LeaseConsumerAccess::counts(const LeaseConsumer& consumer, const std::exception_ptr& error) {
  return consumer.impl_->counts(error);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
