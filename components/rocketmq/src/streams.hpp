#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "client.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// The stream on which a client sends its settings to the proxy. The proxy answers with these settings, merged with
/// those of the group. The proxy keeps the client's settings as long as the stream lasts.
class Telemetry final : public Call {
 public:
  using OnSettings = std::function<void(const protocol::TelemetryCommand&)>;
  using OnEnd = std::function<void(const grpc::Status&)>;

  static void start(Calls& calls, Client& client, const protocol::Settings& settings, OnSettings on_settings,
                    OnEnd on_end) {
    auto call = std::make_unique<Telemetry>(settings, std::move(on_settings), std::move(on_end));
    client.prepare(call->context());
    call->stream_ = client.stub().PrepareAsyncTelemetry(&call->context(), &calls.queue());
    Telemetry& kept = calls.keep(std::move(call));
    kept.stream_->StartCall(kept.tag());
  }

  Telemetry(const protocol::Settings& settings, OnSettings on_settings, OnEnd on_end)
      : on_settings_(std::move(on_settings)), on_end_(std::move(on_end)) {
    *command_.mutable_settings() = settings;
  }

  bool step_ended(bool ok) override {
    if (step_ == Step::finish) {
      on_end_(status_);
      return false;
    }
    if (!ok) {
      step_ = Step::finish;
      stream_->Finish(&status_, tag());
    } else if (step_ == Step::start) {
      step_ = Step::write;
      stream_->Write(command_, tag());
    } else {
      if (step_ == Step::read) on_settings_(command_);
      step_ = Step::read;
      stream_->Read(&command_, tag());
    }
    return true;
  }

 private:
  enum class Step { start, write, read, finish };

  void* tag() noexcept { return static_cast<Call*>(this); }

  const OnSettings on_settings_;
  const OnEnd on_end_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<protocol::TelemetryCommand, protocol::TelemetryCommand>> stream_;
  protocol::TelemetryCommand command_;
  grpc::Status status_;
  Step step_ = Step::start;
};

/// A request for messages. It waits at the broker until there are messages.
class Receive final : public Call {
 public:
  using OnMessage = std::function<void(protocol::Message&&)>;

  /// `code`: the last code that the broker has sent.
  using OnEnd = std::function<void(const grpc::Status&, protocol::Code code)>;

  static void start(Calls& calls, Client& client, const protocol::ReceiveMessageRequest& request,
                    std::chrono::milliseconds timeout, OnMessage on_message, OnEnd on_end) {
    auto call = std::make_unique<Receive>(std::move(on_message), std::move(on_end));
    client.prepare(call->context());
    call->context().set_deadline(std::chrono::system_clock::now() + timeout);
    call->stream_ = client.stub().PrepareAsyncReceiveMessage(&call->context(), request, &calls.queue());
    Receive& kept = calls.keep(std::move(call));
    kept.stream_->StartCall(kept.tag());
  }

  Receive(OnMessage on_message, OnEnd on_end) : on_message_(std::move(on_message)), on_end_(std::move(on_end)) {}

  bool step_ended(bool ok) override {
    if (step_ == Step::finish) {
      on_end_(status_, code_);
      return false;
    }
    if (!ok) {
      step_ = Step::finish;
      stream_->Finish(&status_, tag());
      return true;
    }
    if (step_ == Step::read) {
      if (answer_.has_message()) on_message_(std::move(*answer_.mutable_message()));
      if (answer_.has_status()) code_ = answer_.status().code();
    }
    step_ = Step::read;
    stream_->Read(&answer_, tag());
    return true;
  }

 private:
  enum class Step { start, read, finish };

  void* tag() noexcept { return static_cast<Call*>(this); }

  const OnMessage on_message_;
  const OnEnd on_end_;
  std::unique_ptr<grpc::ClientAsyncReader<protocol::ReceiveMessageResponse>> stream_;
  protocol::ReceiveMessageResponse answer_;
  grpc::Status status_;
  protocol::Code code_ = protocol::CODE_UNSPECIFIED;
  Step step_ = Step::start;
};

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
