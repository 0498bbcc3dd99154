#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

using Clock = std::chrono::steady_clock;

/// A running call. It owns the objects that gRPC needs until the call has ended.
class Call {
 public:
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Handles the end of a step. Returns whether another step runs.
  virtual bool step_ended(bool ok) = 0;

  grpc::ClientContext& context() noexcept { return context_; }

 protected:
  Call() = default;

 private:
  grpc::ClientContext context_;
};

/// The calls of one source or publisher. Only one thread uses it, except for `wake`.
class Calls {
 public:
  Calls() = default;
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  grpc::CompletionQueue& queue() noexcept { return queue_; }

  /// Owns a call until it has ended. The call's pointer is the tag of its steps.
  template <class SomeCall>
  SomeCall& keep(std::unique_ptr<SomeCall> call) {
    SomeCall& kept = *call;
    calls_.emplace(&kept, std::move(call));
    return kept;
  }

  /// Handles the steps that have ended. If none has, waits for one, for `wake`, or until `give_up`. Returns false if
  /// nothing has ended.
  bool wait(Clock::time_point give_up);

  /// Whether `wake` was called since the last time that this returned true.
  bool take_wake() noexcept { return std::exchange(was_woken_, false); }

  /// Makes `wait` return soon. Any thread may call it.
  void wake() noexcept;

  /// Cancels all calls. `wait` must still handle the end of each.
  void cancel_all();

 private:
  bool handle(void* tag, bool ok);

  grpc::CompletionQueue queue_;
  std::map<Call*, std::unique_ptr<Call>> calls_;
  grpc::Alarm alarm_;
  std::atomic<bool> alarm_is_set_ = false;
  bool was_woken_ = false;
};

/// A call with one answer.
template <class Answer>
class UnaryCall final : public Call {
 public:
  using Then = std::function<void(const grpc::Status&, const Answer&)>;

  explicit UnaryCall(Then then) : then_(std::move(then)) {}

  /// `reader`: the object that Prepare<Call> of the stub has returned for this call's context.
  void start(std::unique_ptr<grpc::ClientAsyncResponseReader<Answer>> reader) {
    reader_ = std::move(reader);
    reader_->StartCall();
    reader_->Finish(&answer_, &status_, static_cast<Call*>(this));
  }

  bool step_ended(bool) override {
    then_(status_, answer_);
    return false;
  }

 private:
  const Then then_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Answer>> reader_;
  Answer answer_;
  grpc::Status status_;
};

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
