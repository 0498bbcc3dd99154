#include "calls.hpp"

#include <algorithm>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

/// gRPC's deadlines are times of the system clock.
std::chrono::system_clock::time_point system_time(Clock::time_point time) {
  const auto left = std::max(Clock::duration::zero(), time - Clock::now());
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
}

}  // namespace

/// gRPC requires that each step is removed from the queue. The results of the steps are ignored.
Calls::~Calls() {
  cancel_all();
  alarm_.Cancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool Calls::wait(Clock::time_point give_up) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, system_time(give_up)) != grpc::CompletionQueue::GOT_EVENT) return false;
  bool handled = handle(tag, ok);
  while (queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now()) == grpc::CompletionQueue::GOT_EVENT) {
    handled = handle(tag, ok) || handled;
  }
  return handled;
}

bool Calls::handle(void* tag, bool ok) {
  if (tag == &alarm_) {
    alarm_is_set_ = false;
    was_woken_ = true;
    return false;
  }
  Call* const call = static_cast<Call*>(tag);
  if (call->step_ended(ok)) return true;
  calls_.erase(call);
  return true;
}

void Calls::wake() noexcept {
  if (!alarm_is_set_.exchange(true)) alarm_.Set(&queue_, std::chrono::system_clock::now(), &alarm_);
}

void Calls::cancel_all() {
  for (const auto& [call, owner] : calls_) call->context().TryCancel();
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
