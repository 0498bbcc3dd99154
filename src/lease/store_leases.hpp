#pragma once

#include <memory>
#include <string>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/lease_store.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_policy.hpp"
#include "lease/lease_call.hpp"
#include "lease/lease_clock.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The leases of a consumer on a `LeaseStore`.
class StoreLeases final : public LeaseProvider {
 public:
  /// Errors: as `LeaseConsumer`'s constructor on a store.
  /// `length` is that of the leases. `clock` must outlive the object.
  StoreLeases(std::shared_ptr<LeaseStore> store, std::string consumer, std::chrono::milliseconds length,
              ConsumerOptions options, const LeaseClock& clock = LeaseClock::steady());

  const ConsumerPolicy& policy() const noexcept override { return policy_; }

  std::unique_ptr<LeaseCall> begin(const Message&, const ContentHash&,
                                   const std::function<void(Event)>& notify) override;
  const void* identity() const noexcept override { return store_.get(); }

 private:
  const std::shared_ptr<LeaseStore> store_;
  const ConsumerPolicy policy_;
  const std::chrono::milliseconds lease_;
  const std::string owner_name_;
  const LeaseClock& clock_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
