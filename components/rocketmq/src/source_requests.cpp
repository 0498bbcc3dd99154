// The requests of a RocketMQ source for messages.

#include <algorithm>
#include <utility>

#include <google/protobuf/duration.pb.h>

#include "received_message.hpp"
#include "rocketmq_source.hpp"
#include "streams.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Stub = protocol::MessagingService::Stub;

constexpr std::size_t most_messages = 32;  // the broker's limit for one answer
// A message that another consumer gave back does not end the wait of a request: measured on RocketMQ 5.3.3. So it waits
// as long as the request. The proxy has no shorter time (grpcClientConsumerMinLongPollingTimeoutMillis).
constexpr auto long_poll = 5s;
constexpr milliseconds receive_timeout = 15s;
constexpr auto pause_after_error = 1s;
constexpr int most_acknowledgements = 256;

void set(google::protobuf::Duration& to, milliseconds time) {
  to.set_seconds(time.count() / 1000);
  to.set_nanos(static_cast<int>(time.count() % 1000 * 1'000'000));
}

}  // namespace

/// While there are messages, several requests wait for them. Otherwise one request waits.
void RocketMqSource::receive_more(std::size_t max) {
  if (!is_connected()) return;
  std::size_t wanted = max - std::min(max, received_.size());
  for (auto& [name, broker] : brokers_) {
    const int most = broker.had_messages ? options_.receives : 1;
    wanted -= std::min(wanted, most_messages * static_cast<std::size_t>(broker.receiving));
    while (wanted > 0 && broker.receiving < most && Clock::now() >= broker.next_receive) {
      receive(name, broker, std::min(wanted, most_messages));
      wanted -= std::min(wanted, most_messages);
    }
  }
}

void RocketMqSource::receive(const std::string& name, Broker& broker, std::size_t most) {
  protocol::ReceiveMessageRequest request;
  request.mutable_group()->set_name(options_.group);
  protocol::MessageQueue& queue = *request.mutable_message_queue();
  queue.mutable_topic()->set_name(options_.topic);
  queue.set_id(-1);
  queue.set_permission(protocol::READ_WRITE);
  queue.mutable_broker()->set_name(name);
  request.mutable_filter_expression()->set_type(protocol::TAG);
  request.mutable_filter_expression()->set_expression(options_.tags);
  request.set_batch_size(static_cast<int>(most));
  set(*request.mutable_invisible_duration(), options_.invisible);
  set(*request.mutable_long_polling_timeout(), long_poll);
  ++broker.receiving;
  auto got_some = std::make_shared<bool>(false);
  Receive::start(
      calls_, *proxies_.at(broker.target).client, request, receive_timeout,
      [this, name, got_some, epoch = epoch_](protocol::Message&& message) {
        *got_some = true;
        if (epoch == epoch_) received(name, std::move(message));
      },
      [this, name, target = broker.target, got_some, epoch = epoch_](const grpc::Status& status, protocol::Code code) {
        if (epoch == epoch_) receive_ended(name, target, status, code, *got_some);
      });
}

void RocketMqSource::received(const std::string& broker, protocol::Message&& message) {
  const protocol::SystemProperties& system = message.system_properties();
  const std::uint64_t ticket = held_.add({.id = system.message_id(),
                                          .handle = system.receipt_handle(),
                                          .broker = broker,
                                          .deliveries = system.delivery_attempt(),
                                          .expires_at = Clock::now() + options_.invisible});
  received_.push_back(incoming_of(std::move(message), ticket, is_fifo_));
  held_.find(ticket)->lane = received_.back().lane;
}

void RocketMqSource::receive_ended(const std::string& name, const std::string& target, const grpc::Status& status,
                                   protocol::Code code, bool got_some) {
  if (!status.ok()) return failed(status);
  const auto at = brokers_.find(name);
  // The route may have changed the broker's proxy during the request. Then the requests are counted from zero again.
  if (at == brokers_.end() || at->second.target != target) return;
  Broker& broker = at->second;
  --broker.receiving;
  broker.had_messages = got_some;
  if (got_some || code == protocol::OK || code == protocol::MESSAGE_NOT_FOUND) {
    has_received_ = true;
    receive_errors_ = 0;
    return;
  }
  if (code == protocol::UNRECOGNIZED_CLIENT_TYPE) return lost(text_of(code));
  broker.next_receive = Clock::now() + pause_after_error;
  if (++receive_errors_ == 1) report(SourceEventType::warning, "no messages: " + text_of(code));
  if (has_received_) return;
  refuse(refusal_of(code, subject_));
  // The broker has no special code for a missing group. So the source treats repeated errors as a missing group.
  constexpr int enough = 3;
  if (receive_errors_ == enough) {
    refuse(Error(ErrorCode::broker_refused, "RocketMQ: the broker delivers no messages (" + text_of(code) +
                                                "); does the group '" + options_.group +
                                                "' exist? Create it with mqadmin updateSubGroup"));
  }
}

Client* RocketMqSource::client_of(const HeldMessage& message) {
  const auto broker = brokers_.find(message.broker);
  return is_connected() && broker != brokers_.end() ? proxies_.at(broker->second.target).client.get() : nullptr;
}

void RocketMqSource::send_acknowledgements() {
  if (done_.empty() || !is_connected() || Clock::now() < next_acknowledgement_) return;
  struct Request {
    protocol::AckMessageRequest request;
    std::map<std::string, std::uint64_t> ticket_of_handle;
  };
  std::map<Client*, Request> requests;
  std::erase_if(done_, [&](std::uint64_t ticket) {
    HeldMessage* const message = held_.find(ticket);
    if (message == nullptr) return true;
    Client* const client = client_of(*message);
    if (message->is_busy || client == nullptr) return false;
    auto& [request, ticket_of_handle] = requests[client];
    if (request.entries_size() == most_acknowledgements) return false;
    protocol::AckMessageEntry& entry = *request.add_entries();
    entry.set_message_id(message->id);
    entry.set_receipt_handle(message->handle);
    ticket_of_handle.emplace(message->handle, ticket);
    message->is_busy = true;
    return false;  // the ticket stays in the list until the broker has answered
  });
  for (auto& [client, each] : requests) {
    each.request.mutable_group()->set_name(options_.group);
    each.request.mutable_topic()->set_name(options_.topic);
    client->send(calls_, &Stub::PrepareAsyncAckMessage, each.request, request_timeout,
                 [this, epoch = epoch_, tickets = std::move(each.ticket_of_handle)](
                     const grpc::Status& status, const protocol::AckMessageResponse& answer) {
                   if (epoch != epoch_) return;
                   if (!status.ok()) return failed(status);
                   acknowledged(answer, tickets);
                 });
  }
}

void RocketMqSource::acknowledged(const protocol::AckMessageResponse& answer,
                                  const std::map<std::string, std::uint64_t>& ticket_of_handle) {
  for (const auto& [handle, ticket] : ticket_of_handle) {
    if (HeldMessage* const message = held_.find(ticket)) message->is_busy = false;
  }
  bool failed = answer.entries().empty();
  for (const protocol::AckMessageResultEntry& entry : answer.entries()) {
    const auto ticket = ticket_of_handle.find(entry.receipt_handle());
    if (ticket == ticket_of_handle.end()) continue;
    const protocol::Code code = entry.status().code();
    // INVALID_RECEIPT_HANDLE: the invisible time was over, and the broker delivers the message again.
    if (code == protocol::OK || code == protocol::INVALID_RECEIPT_HANDLE) {
      held_.erase(ticket->second);
    } else {
      failed = true;
    }
  }
  std::erase_if(done_, [&](std::uint64_t ticket) { return held_.find(ticket) == nullptr; });
  if (failed) next_acknowledgement_ = Clock::now() + pause_after_error;
}

/// Prolongs the invisible time of held messages when half of it is over. Drops messages whose invisible time is over.
/// Ends the invisible time of messages that are given back.
void RocketMqSource::prolong_if_due() {
  const auto now = Clock::now();
  if (now < next_prolongation_) return;
  next_prolongation_ = now + options_.invisible / 20;
  std::vector<std::uint64_t> over;
  std::vector<std::uint64_t> given_back;
  for (auto& [ticket, message] : held_) {
    if (now >= message.expires_at) {
      (message.is_given_back ? given_back : over).push_back(ticket);
    } else if (message.is_busy || message.is_done || message.is_dead) {
      continue;
    } else if (message.is_given_back) {
      if (change_invisible_time(ticket, message, 0ms)) given_back.push_back(ticket);
    } else if (now >= message.expires_at - options_.invisible / 2) {
      change_invisible_time(ticket, message, options_.invisible);
    }
  }
  for (const std::uint64_t ticket : given_back) held_.erase(ticket);
  for (const std::uint64_t ticket : over) drop(ticket, "the invisible time of a message is over");
}

/// Returns false if the message's broker is not connected.
bool RocketMqSource::change_invisible_time(std::uint64_t ticket, HeldMessage& message, milliseconds time) {
  Client* const client = client_of(message);
  if (client == nullptr) return false;
  protocol::ChangeInvisibleDurationRequest request;
  request.mutable_group()->set_name(options_.group);
  request.mutable_topic()->set_name(options_.topic);
  request.set_receipt_handle(message.handle);
  request.set_message_id(message.id);
  set(*request.mutable_invisible_duration(), time);
  message.is_busy = true;
  const auto sent = Clock::now();
  client->send(calls_, &Stub::PrepareAsyncChangeInvisibleDuration, request, request_timeout,
               [this, ticket, time, sent, epoch = epoch_](const grpc::Status& status,
                                                          const protocol::ChangeInvisibleDurationResponse& answer) {
                 if (epoch != epoch_) return;
                 if (!status.ok()) return failed(status);
                 HeldMessage* const held = held_.find(ticket);
                 if (held == nullptr) return;
                 held->is_busy = false;
                 if (answer.status().code() == protocol::OK) {
                   held->handle = handle_after_change(answer.receipt_handle());
                   held->expires_at = sent + time;
                 } else if (answer.status().code() == protocol::INVALID_RECEIPT_HANDLE) {
                   drop(ticket, "the broker has given a message to another consumer");
                 }
               });
  return true;
}

/// Forgets a message. Because of the event, `run` checks which messages are still held, and gives back those that
/// follow in the lane. Those that `run` does not have yet are given back here.
void RocketMqSource::drop(std::uint64_t ticket, const char* why) {
  const HeldMessage* const dropped = held_.find(ticket);
  const auto lane = dropped != nullptr ? dropped->lane : std::nullopt;
  held_.erase(ticket);
  std::erase_if(received_, [&](const Incoming& each) {
    if (lane && each.lane == lane && each.ticket > ticket) {
      give_back(each.ticket);
      return true;
    }
    return each.ticket == ticket;
  });
  report(SourceEventType::lanes_revoked, why);
}

void RocketMqSource::give_back(std::uint64_t ticket) {
  HeldMessage* const message = held_.find(ticket);
  if (message == nullptr) return;
  message->is_given_back = true;
  next_prolongation_ = {};
}

void RocketMqSource::forward(DeadLetter& letter, HeldMessage& message) {
  Client* const client = client_of(message);
  if (client == nullptr) return;
  protocol::ForwardMessageToDeadLetterQueueRequest request;
  request.mutable_group()->set_name(options_.group);
  request.mutable_topic()->set_name(options_.topic);
  request.set_receipt_handle(message.handle);
  request.set_message_id(message.id);
  request.set_delivery_attempt(message.deliveries);
  request.set_max_delivery_attempts(message.deliveries);
  message.is_busy = true;
  client->send(calls_, &Stub::PrepareAsyncForwardMessageToDeadLetterQueue, request, request_timeout,
               [this, ticket = letter.incoming->ticket, epoch = epoch_](
                   const grpc::Status& status, const protocol::ForwardMessageToDeadLetterQueueResponse& answer) {
                 if (epoch != epoch_) return;
                 if (!status.ok()) return failed(status);
                 HeldMessage* const held = held_.find(ticket);
                 if (held == nullptr) return;
                 held->is_busy = false;
                 held->is_dead = answer.status().code() == protocol::OK;
                 if (answer.status().code() == protocol::INVALID_RECEIPT_HANDLE) {
                   drop(ticket, "the broker has given a message to another consumer");
                 } else if (!held->is_dead) {
                   report(SourceEventType::warning, "a dead letter was refused: " + text_of(answer.status().code()));
                 }
               });
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
