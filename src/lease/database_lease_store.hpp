#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/version.hpp>

#include "consume/consumer_context.hpp"
#include "lease/lease_call.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Keeps leases in `txinbox_consumed_message`. Each step is a transaction of its own, on a session of the provider.
class DatabaseLeaseStore final : public LeaseProvider {
 public:
  /// `length` is that of the leases.
  ///
  /// Errors: as `LeaseConsumer`'s constructor.
  DatabaseLeaseStore(SessionProvider source, std::string consumer, std::chrono::milliseconds length,
                     ConsumerOptions options);

  const ConsumerPolicy& policy() const noexcept override { return context_; }

  std::unique_ptr<LeaseCall> begin(const Message&, const ContentHash&,
                                   const std::function<void(Event)>& notify) override;
  void count_duplicate(const Result&) noexcept override;
  bool is_paused() override { return context_.is_paused(); }
  bool is_parked(const Message& message) override { return context_.is_parked(message); }
  const void* identity() const noexcept override { return context_.source.identity(); }

 private:
  ConsumerContext context_;
  const std::chrono::milliseconds lease_;
  const std::string owner_name_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
