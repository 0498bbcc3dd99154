#include "lease/store_leases.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "base/hex.hpp"
#include "base/process.hpp"
#include "base/token.hpp"
#include "lease/active_lease.hpp"
#include "lease/run_with_retries.hpp"
#include "types/handler_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using std::chrono::milliseconds;
using Clock = LeaseTime::Clock;

namespace {

ConsumerOptions checked(ConsumerOptions options) {
  if (options.count_starts || options.keep_error_text) {
    throw Error(ErrorCode::invalid_argument,
                "count_starts and keep_error_text need the tables of the database; a lease store has "
                "neither markers of attempts nor error texts");
  }
  return options;
}

class StoreLeaseCall final : public LeaseCall {
 public:
  StoreLeaseCall(LeaseStore& store, const ConsumerPolicy& policy, const LeaseClock& clock, milliseconds lease,
                 std::string_view owner_name, const Message& message, const ContentHash& hash,
                 const std::function<void(Event)>& notify)
      : store_(store),
        clock_(clock),
        policy_(policy),
        notify_(notify),
        hash_(to_hex(hash.bytes())),
        request_{.consumer = policy.consumer,
                 .business_key = message.business_key,
                 .message_id = message.message_id,
                 .content_hash = hash_,
                 .token = token_,
                 .owner = owner_name,
                 .lease = lease,
                 .valid_for = message.valid_for} {}

  std::variant<Grant, Result> claim() override;
  std::optional<Clock::time_point> renew(std::int64_t fence, const std::stop_token& stop) override;
  bool complete(std::int64_t fence, const std::optional<std::string>& result) override;
  bool give_back(std::int64_t fence, const Failure&, Counting) noexcept override;

 private:
  template <class Step>
  auto with_retries(const Step& step);

  LeaseStore& store_;
  const LeaseClock& clock_;
  const ConsumerPolicy& policy_;
  const std::function<void(Event)>& notify_;
  const std::string token_ = Token::random().hex();
  const std::string hash_;
  const LeaseRequest request_;
};

template <class Step>
auto StoreLeaseCall::with_retries(const Step& step) {
  return run_with_retries(policy_, notify_, step, [](const Failure&) { return true; });
}

Result result_of(LeaseAnswer& answer) {
  switch (answer.claim) {
    case Claim::in_progress:
      return {.outcome = Outcome::in_progress, .retry_after = std::max(answer.remaining, milliseconds(0))};
    case Claim::already_consumed:
      return {.outcome = Outcome::already_consumed, .stored = std::move(answer.result), .age = answer.age};
    case Claim::conflict:
      return {.outcome = Outcome::conflict};
    case Claim::parked:
      return {.outcome = Outcome::parked};
    case Claim::discarded:
      return {.outcome = Outcome::discarded};
    case Claim::claimed:
      break;
  }
  throw Error(ErrorCode::unknown_state, "the lease store gave an answer that this version does not know");
}

/// Claims the key. The time of the lease is counted from before the request, so the lease cannot end earlier in the
/// store.
std::variant<Grant, Result> StoreLeaseCall::claim() {
  constexpr int tries_to_be_in_time = 3;
  bool taken_over = false;
  for (int i = 0; i < tries_to_be_in_time; ++i) {
    Clock::time_point sent;
    LeaseAnswer answer = with_retries([&] {
      sent = clock_.now();
      return store_.claim(request_);
    });
    if (answer.claim != Claim::claimed) return result_of(answer);
    taken_over = taken_over || answer.taken_over;
    if (clock_.now() < sent + answer.remaining) return Grant{answer.fence, sent + answer.remaining, taken_over};
  }
  throw lease_is_too_short(request_.lease);
}

std::optional<Clock::time_point> StoreLeaseCall::renew(std::int64_t fence, const std::stop_token& /*stop*/) {
  const auto sent = clock_.now();
  if (!store_.renew(request_, fence)) return std::nullopt;
  return sent + request_.lease;
}

bool StoreLeaseCall::complete(std::int64_t fence, const std::optional<std::string>& result) {
  return with_retries([&] { return store_.complete(request_, fence, result); });
}

bool StoreLeaseCall::give_back(std::int64_t fence, const Failure& failure, Counting counting) noexcept {
  const bool counts = policy_.counts(failure, counting);
  if (counts) set_count(failure.error(), FailureCount::lost);
  try {
    const bool parked = store_.fail(request_, fence,
                                    {.counts = counts,
                                     .rejected = counts && failure.is(ErrorCode::rejected),
                                     .max_attempts = policy_.options.max_attempts,
                                     .error_class = error_class(failure.error())});
    if (counts) set_count(failure.error(), FailureCount::stored);
    return parked;
  } catch (...) {
    return false;  // the lease expires by itself
  }
}

}  // namespace

StoreLeases::StoreLeases(std::shared_ptr<LeaseStore> store, std::string consumer, milliseconds length,
                         ConsumerOptions options, const LeaseClock& clock)
    : store_(std::move(store)),
      policy_(std::move(consumer), checked(std::move(options))),
      lease_(length),
      owner_name_(host_and_process()),
      clock_(clock) {
  if (!store_) throw Error(ErrorCode::invalid_argument, "the lease store is null");
}

std::unique_ptr<LeaseCall> StoreLeases::begin(const Message& message, const ContentHash& hash,
                                              const std::function<void(Event)>& notify) {
  return std::make_unique<StoreLeaseCall>(*store_, policy_, clock_, lease_, owner_name_, message, hash, notify);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
