#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "client.hpp"
#include "rocketmq.grpc.pb.h"

namespace txinbox::test {

/// A proxy with one topic, in this process. By default it does not answer the settings, confirms no message, and
/// delivers none.
class FakeProxy final : public rocketmq::protocol::MessagingService::Service {
 public:
  FakeProxy() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeProxy() override { server_->Shutdown(std::chrono::system_clock::now()); }
  FakeProxy(const FakeProxy&) = delete;
  FakeProxy& operator=(const FakeProxy&) = delete;

  std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
  void answer_settings() { answers_settings_ = true; }

  /// Delivers messages with these receipt handles in one answer.
  void deliver(std::vector<std::string> handles = {"first"}) {
    const std::lock_guard lock(mutex_);
    handles_ = std::move(handles);
    delivers_ = true;
  }

  /// From now on, the proxy answers nothing. The connections stay open.
  void fall_silent() { is_silent_ = true; }

  /// As `fall_silent`, when the next answer with messages has begun.
  void fall_silent_in_answer() { stops_in_answer_ = true; }

  /// The group keeps its order, and all messages belong to one message group. Call it before `answer_settings`.
  void be_fifo() { is_fifo_ = true; }

  /// Answers the next changes of the invisible time as if another consumer had the message.
  void refuse_changes_of(std::string handle) {
    const std::lock_guard lock(mutex_);
    refused_handle_ = std::move(handle);
  }

  /// How the proxy answers `ForwardMessageToDeadLetterQueue` and `ChangeInvisibleDuration`.
  enum class Answer { ok, error, none };

  /// A request that the proxy has not answered yet gets this answer, too.
  void answer_dead_letters(Answer how) { dead_letters_ = how; }
  void answer_changes(Answer how) { changes_ = how; }

  /// How the proxy treats the messages of a publisher after some answers: it does not answer, or each request ends
  /// with the status UNAVAILABLE, as if the proxy had closed the connection. It treats a question for a route in the
  /// same way.
  enum class Rest { is_silent, is_closed };

  /// Confirms this many messages, except those with the body "refused".
  void answer_messages(std::size_t count, Rest rest) {
    const std::lock_guard lock(mutex_);
    answers_ = count;
    rest_ = rest;
    answers_routes_ = count == any_number;
  }
  static constexpr std::size_t any_number = ~std::size_t{0};

  /// The ids of the messages that the proxy has confirmed.
  std::set<std::string> confirmed() const {
    const std::lock_guard lock(mutex_);
    return confirmed_;
  }

  /// The user properties of the last message that the proxy has confirmed.
  std::map<std::string, std::string> properties() const {
    const rocketmq::protocol::Message last = message();
    return {last.user_properties().begin(), last.user_properties().end()};
  }

  /// The last message that the proxy has confirmed.
  rocketmq::protocol::Message message() const {
    const std::lock_guard lock(mutex_);
    return message_;
  }

  /// A request to change the invisible time.
  struct Change {
    std::string handle;
    std::int64_t seconds;
    bool operator==(const Change&) const = default;
  };

  /// The requests that the proxy has got.
  std::vector<Change> changes() const {
    const std::lock_guard lock(mutex_);
    return requested_changes_;
  }
  int dead_letters() const { return requested_dead_letters_; }
  int acknowledgements() const { return requested_acknowledgements_; }

  grpc::Status QueryRoute(grpc::ServerContext* context, const rocketmq::protocol::QueryRouteRequest* request,
                          rocketmq::protocol::QueryRouteResponse* answer) override {
    stay_silent(context);
    if (!answers_routes_) return end(context);
    answer->mutable_status()->set_code(rocketmq::protocol::OK);
    rocketmq::protocol::MessageQueue& queue = *answer->add_message_queues();
    *queue.mutable_topic() = request->topic();
    queue.set_permission(rocketmq::protocol::READ_WRITE);
    queue.mutable_broker()->set_name("fake");
    *queue.mutable_broker()->mutable_endpoints() = rocketmq::endpoints_of({.host = "127.0.0.1", .port = port()});
    return grpc::Status::OK;
  }

  grpc::Status Telemetry(grpc::ServerContext* context,
                         grpc::ServerReaderWriter<rocketmq::protocol::TelemetryCommand,
                                                  rocketmq::protocol::TelemetryCommand>* stream) override {
    rocketmq::protocol::TelemetryCommand command;
    while (stream->Read(&command)) {
      stay_silent(context);
      wait(context, [&] { return answers_settings_.load(); });
      if (context->IsCancelled()) break;
      if (is_fifo_) command.mutable_settings()->mutable_subscription()->set_fifo(true);
      stream->Write(command);
    }
    return grpc::Status::OK;
  }

  grpc::Status Heartbeat(grpc::ServerContext* context, const rocketmq::protocol::HeartbeatRequest*,
                         rocketmq::protocol::HeartbeatResponse* answer) override {
    stay_silent(context);
    answer->mutable_status()->set_code(rocketmq::protocol::OK);
    return grpc::Status::OK;
  }

  grpc::Status ReceiveMessage(grpc::ServerContext* context, const rocketmq::protocol::ReceiveMessageRequest* request,
                              grpc::ServerWriter<rocketmq::protocol::ReceiveMessageResponse>* stream) override {
    wait(context, [&] { return !is_silent_ && delivers_.exchange(false); });
    if (context->IsCancelled()) return grpc::Status::CANCELLED;
    rocketmq::protocol::ReceiveMessageResponse answer;
    answer.mutable_status()->set_code(rocketmq::protocol::OK);
    stream->Write(answer);
    if (stops_in_answer_) is_silent_ = true;
    stay_silent(context);
    std::vector<std::string> handles;
    {
      const std::lock_guard lock(mutex_);
      handles = handles_;
    }
    for (const std::string& handle : handles) {
      rocketmq::protocol::Message& message = *answer.mutable_message();  // it replaces the status
      *message.mutable_topic() = request->message_queue().topic();
      message.set_body("body");
      message.mutable_system_properties()->set_message_id("1");
      message.mutable_system_properties()->set_receipt_handle(handle);
      message.mutable_system_properties()->set_delivery_attempt(1);
      message.mutable_system_properties()->set_body_encoding(rocketmq::protocol::IDENTITY);
      if (is_fifo_) message.mutable_system_properties()->set_message_group("group");
      stream->Write(answer);
    }
    return grpc::Status::OK;
  }

  grpc::Status NotifyClientTermination(grpc::ServerContext* context,
                                       const rocketmq::protocol::NotifyClientTerminationRequest*,
                                       rocketmq::protocol::NotifyClientTerminationResponse* answer) override {
    stay_silent(context);
    answer->mutable_status()->set_code(rocketmq::protocol::OK);
    return grpc::Status::OK;
  }

  grpc::Status AckMessage(grpc::ServerContext* context, const rocketmq::protocol::AckMessageRequest*,
                          rocketmq::protocol::AckMessageResponse* answer) override {
    stay_silent(context);
    ++requested_acknowledgements_;
    answer->mutable_status()->set_code(rocketmq::protocol::OK);
    return grpc::Status::OK;
  }

  grpc::Status ForwardMessageToDeadLetterQueue(
      grpc::ServerContext* context, const rocketmq::protocol::ForwardMessageToDeadLetterQueueRequest*,
      rocketmq::protocol::ForwardMessageToDeadLetterQueueResponse* answer) override {
    ++requested_dead_letters_;
    return give(context, dead_letters_, *answer->mutable_status());
  }

  /// The new receipt handle is "changed".
  grpc::Status ChangeInvisibleDuration(grpc::ServerContext* context,
                                       const rocketmq::protocol::ChangeInvisibleDurationRequest* request,
                                       rocketmq::protocol::ChangeInvisibleDurationResponse* answer) override {
    {
      const std::lock_guard lock(mutex_);
      requested_changes_.push_back(
          {.handle = request->receipt_handle(), .seconds = request->invisible_duration().seconds()});
      if (request->receipt_handle() == refused_handle_) {
        answer->mutable_status()->set_code(rocketmq::protocol::INVALID_RECEIPT_HANDLE);
        return grpc::Status::OK;
      }
    }
    answer->set_receipt_handle("changed");
    return give(context, changes_, *answer->mutable_status());
  }

  grpc::Status SendMessage(grpc::ServerContext* context, const rocketmq::protocol::SendMessageRequest* request,
                           rocketmq::protocol::SendMessageResponse* answer) override {
    {
      const std::lock_guard lock(mutex_);
      if (answers_ > 0) {
        if (answers_ != any_number) --answers_;
        const rocketmq::protocol::Message& message = request->messages(0);
        const bool is_refused = message.body() == "refused";
        if (!is_refused) confirmed_.insert(message.system_properties().message_id());
        if (!is_refused) message_ = message;
        const auto code = is_refused ? rocketmq::protocol::TOO_MANY_REQUESTS : rocketmq::protocol::OK;
        answer->mutable_status()->set_code(code);
        answer->add_entries()->mutable_status()->set_code(code);
        return grpc::Status::OK;
      }
    }
    return end(context);
  }

 private:
  template <class Condition>
  static void wait(grpc::ServerContext* context, Condition condition) {
    while (!context->IsCancelled() && !condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  /// If the proxy is silent, waits until the client gives the request up.
  void stay_silent(grpc::ServerContext* context) const {
    if (is_silent_) wait(context, [] { return false; });
  }

  grpc::Status end(grpc::ServerContext* context) const {
    if (rest_ == Rest::is_closed) return {grpc::StatusCode::UNAVAILABLE, "closed"};
    wait(context, [] { return false; });
    return grpc::Status::CANCELLED;
  }

  grpc::Status give(grpc::ServerContext* context, const std::atomic<Answer>& how,
                    rocketmq::protocol::Status& status) const {
    stay_silent(context);
    wait(context, [&] { return how != Answer::none; });
    if (context->IsCancelled()) return grpc::Status::CANCELLED;
    status.set_code(how == Answer::ok ? rocketmq::protocol::OK : rocketmq::protocol::INTERNAL_ERROR);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::atomic<bool> answers_settings_ = false, delivers_ = false, answers_routes_ = true, is_fifo_ = false,
                    is_silent_ = false, stops_in_answer_ = false;
  std::atomic<Rest> rest_ = Rest::is_silent;
  std::atomic<Answer> dead_letters_ = Answer::ok, changes_ = Answer::ok;
  std::atomic<int> requested_dead_letters_ = 0, requested_acknowledgements_ = 0;
  mutable std::mutex mutex_;
  std::vector<Change> requested_changes_;  // the mutex guards it and the next ones
  std::vector<std::string> handles_;
  std::string refused_handle_;
  std::size_t answers_ = 0;
  std::set<std::string> confirmed_;
  rocketmq::protocol::Message message_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace txinbox::test
