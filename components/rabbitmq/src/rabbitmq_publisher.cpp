#include <txinbox/rabbitmq.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <amqp.h>
#include <amqp_framing.h>
#include <txinbox/error.hpp>

#include "connection.hpp"
#include "outgoing_properties.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr amqp_channel_t publisher_channel = 1;

/// Whether the broker closed the channel because of one message.
bool is_about_a_message(const Lost& why) {
  return why.reply_code == AMQP_PRECONDITION_FAILED || why.reply_code == AMQP_ACCESS_REFUSED;
}

/// A message of a call.
struct Publication {
  const std::string& routing_key;
  std::string_view body;
  OutgoingProperties properties;

  explicit Publication(const OutgoingMessage& message)
      : routing_key(message.topic), body(message.payload), properties(message) {}
  explicit Publication(const Republication& message)
      : routing_key(message.destination), body(message.incoming->body), properties(message) {}
};

/// They do not move: a message of rabbitmq-c points to the memory of its properties.
using Publications = std::deque<Publication>;

/// The property message-id. None if there is none.
std::optional<std::string_view> id_of(const amqp_basic_properties_t& properties) {
  if ((properties._flags & AMQP_BASIC_MESSAGE_ID_FLAG) == 0) return std::nullopt;
  return view_of(properties.message_id);
}

/// The result of each message of a call. None while the result is not known.
using Results = std::vector<std::optional<PublishResult>>;

class Channel {
 public:
  explicit Channel(RabbitMqPublisherOptions options) : options_(std::move(options)) { check(options_); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  template <class Message>
  std::vector<PublishResult> publish(std::span<const Message> from) {
    Publications messages;
    for (const Message& each : from) messages.emplace_back(each);
    return publish(messages);
  }

 private:
  std::vector<PublishResult> publish(const Publications& messages) {
    give_up_ = Clock::now() + options_.timeout;
    Results results(messages.size());
    std::vector<std::size_t> all(messages.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::optional<Lost> lost = try_to_send(messages, all, results);
    if (lost && is_about_a_message(*lost)) lost = send_sequentially(messages, results);
    const bool knows_nothing = std::ranges::none_of(results, [](const auto& result) { return result.has_value(); });
    // If the broker answers, is not blocked, and does not confirm, the reason is in the messages or their queues.
    const bool was_sent = !unconfirmed_.empty();
    const bool is_about_messages = lost && lost->is_late && was_sent && !is_blocked_ && reaches_broker();
    if (lost && knows_nothing && !is_about_messages) refuse(*lost);
    std::vector<PublishResult> complete;
    complete.reserve(results.size());
    for (auto& result : results) {
      if (result) {
        complete.push_back(std::move(*result));
      } else if (is_about_messages) {
        complete.push_back({PublishStatus::failed, lost->why});
      } else {
        complete.push_back({.status = PublishStatus::postponed});
      }
    }
    return complete;
  }

  /// Finds the message that the broker refuses: the broker has closed the channel and has not named the message.
  std::optional<Lost> send_sequentially(const Publications& messages, Results& results) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (results[i]) continue;
      if (Clock::now() >= give_up_) return Lost{.why = "the time of the call was over"};
      const std::vector<std::size_t> one{i};
      std::optional<Lost> lost = try_to_send(messages, one, results);
      if (!lost) continue;
      if (!is_about_a_message(*lost)) return lost;
      const bool is_invalid = lost->reply_code == AMQP_PRECONDITION_FAILED;
      results[i] = {is_invalid ? PublishStatus::rejected : PublishStatus::failed, lost->why};
    }
    return std::nullopt;
  }

  /// Returns why the connection or the channel was lost.
  std::optional<Lost> try_to_send(const Publications& messages, std::span<const std::size_t> indexes,
                                  Results& results) {
    try {
      find_lost_connection();
      if (!connection_) connect();
    } catch (Lost why) {
      connection_.reset();
      if (is_about_a_message(why)) refuse(why);  // no message was sent, so the reason is the user or the exchange
      return why;
    }
    try {
      send(messages, indexes, results);
      wait_for_confirmations(messages, results);
      amqp_maybe_release_buffers(connection_.get());
      return std::nullopt;
    } catch (const Lost& why) {
      connection_.reset();
      return why;
    }
  }

  /// Whether the broker lets the user in on a new connection.
  bool reaches_broker() const {
    try {
      (void)log_in(options_.server, no_heartbeat, Clock::now() + 1s);
      return true;
    } catch (const Lost&) {
      return false;
    }
  }

  void connect() {
    published_ = 0;
    is_blocked_ = false;
    connection_ = log_in(options_.server, no_heartbeat, give_up_);
    amqp_connection_state_t connection = connection_.get();
    open_channel(connection, publisher_channel, give_up_);
    if (!options_.exchange.empty()) {
      end_requests_at(connection, give_up_);
      amqp_exchange_declare(connection, publisher_channel, bytes_of(options_.exchange), amqp_empty_bytes, 1, 0, 0, 0,
                            amqp_empty_table);
      require(amqp_get_rpc_reply(connection), options_.exchange.c_str());
    }
    ask_for_confirmations(connection, publisher_channel, give_up_);
  }

  /// Reads the frames that have arrived since the last call. So a connection that the broker has closed is noticed.
  void find_lost_connection() noexcept {
    unconfirmed_.clear();
    returned_.clear();
    if (!connection_) return;
    try {
      Results nothing;
      const Publications none;
      while (read_frame(none, nothing, 0ms)) {
      }
    } catch (const Lost&) {
      connection_.reset();
    }
  }

  milliseconds left() const { return std::chrono::ceil<milliseconds>(give_up_ - Clock::now()); }

  void send(const Publications& messages, std::span<const std::size_t> indexes, Results& results) {
    // The connection has no heartbeats, because nothing reads them between two calls. This time-out ends a write if the
    // broker does not read.
    const auto longest_write = static_cast<unsigned>(std::max(left(), 1ms).count());
    ::setsockopt(amqp_get_sockfd(connection_.get()), IPPROTO_TCP, TCP_USER_TIMEOUT, &longest_write,
                 sizeof longest_write);
    const auto frame_max = static_cast<std::size_t>(amqp_get_frame_max(connection_.get()));
    for (const std::size_t i : indexes) {
      const Publication& message = messages[i];
      if (!message.properties.fit(frame_max)) {
        results[i] = {PublishStatus::rejected, "its headers are larger than AMQP allows"};
        continue;
      }
      // The message is mandatory. Otherwise the broker would confirm and drop a message that no queue accepts.
      require(
          amqp_basic_publish(connection_.get(), publisher_channel, bytes_of(options_.exchange),
                             bytes_of(message.routing_key), 1, 0, &message.properties.get(), bytes_of(message.body)),
          "publishing");
      unconfirmed_[++published_] = i;
      // The broker stops reading if the client does not read the returned messages.
      while (read_frame(messages, results, 0ms)) {
      }
    }
  }

  void wait_for_confirmations(const Publications& messages, Results& results) {
    while (!unconfirmed_.empty()) {
      const milliseconds wait = left();
      // The caller closes the connection then. Otherwise a late confirmation could be treated as that of another
      // message.
      if (wait <= 0ms) throw Lost{.why = "the broker has not confirmed in time", .is_late = true};
      (void)read_frame(messages, results, wait);
    }
  }

  /// Returns false if no frame came in time.
  bool read_frame(const Publications& messages, Results& results, milliseconds wait) {
    amqp_frame_t frame{};
    const timeval timeout = timeval_of(wait);
    const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &timeout);
    if (status == AMQP_STATUS_TIMEOUT) return false;
    require(status, "reading");
    if (frame.frame_type == AMQP_FRAME_METHOD) {
      handle_method(frame.payload.method, results);
    } else if (frame.frame_type == AMQP_FRAME_HEADER) {
      note_returned(messages, *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded));
    }
    return true;  // the body of a returned message is ignored
  }

  void handle_method(const amqp_method_t& method, Results& results) {
    throw_if_closed(method);
    if (method.id == AMQP_BASIC_ACK_METHOD) {
      const auto* ack = static_cast<const amqp_basic_ack_t*>(method.decoded);
      settle(ack->delivery_tag, ack->multiple != 0, {}, results);
    } else if (method.id == AMQP_BASIC_NACK_METHOD) {
      const auto* nack = static_cast<const amqp_basic_nack_t*>(method.decoded);
      settle(nack->delivery_tag, nack->multiple != 0, {PublishStatus::failed, "the broker has refused it (nack)"},
             results);
    } else if (method.id == AMQP_BASIC_RETURN_METHOD) {
      returned_key_ = view_of(static_cast<const amqp_basic_return_t*>(method.decoded)->routing_key);
    } else if (method.id == AMQP_CONNECTION_BLOCKED_METHOD || method.id == AMQP_CONNECTION_UNBLOCKED_METHOD) {
      is_blocked_ = method.id == AMQP_CONNECTION_BLOCKED_METHOD;
    }
  }

  /// Records a returned message. The broker returns a message before it confirms it. The other reason for a return is a
  /// flag that this publisher does not set.
  void note_returned(const Publications& messages, const amqp_basic_properties_t& properties) {
    for (const auto& [tag, index] : unconfirmed_) {
      const Publication& each = messages[index];
      if (each.routing_key != returned_key_ || id_of(each.properties.get()) != id_of(properties)) continue;
      const std::string exchange =
          options_.exchange.empty() ? "default exchange" : "exchange '" + options_.exchange + "'";
      returned_[index] = "the " + exchange + " has no queue for '" + each.routing_key + "' (NO_ROUTE)";
    }
  }

  void settle(std::uint64_t tag, bool multiple, const PublishResult& result, Results& results) {
    const auto end = unconfirmed_.upper_bound(tag);
    auto next = multiple ? unconfirmed_.begin() : unconfirmed_.find(tag);
    while (next != end && next != unconfirmed_.end()) {
      const std::size_t index = next->second;
      const auto returned = returned_.find(index);
      results[index] = returned == returned_.end() ? result : PublishResult{PublishStatus::failed, returned->second};
      next = unconfirmed_.erase(next);
    }
  }

  [[noreturn]] void refuse(const Lost& why) const {
    if (why.reply_code == AMQP_NOT_FOUND) {
      throw Error(ErrorCode::broker_refused, "RabbitMQ: " + why.why + "; create the exchange, or correct its name");
    }
    throw_if_refused(why, options_.server);
    throw std::runtime_error("RabbitMQ: " + why.why);
  }

  const RabbitMqPublisherOptions options_;
  ConnectionHandle connection_;
  bool is_blocked_ = false;                           ///< The broker accepts no messages: its memory or disk is full.
  Clock::time_point give_up_{};                       ///< The deadline of the current call.
  std::uint64_t published_ = 0;                       ///< The tag of the last message on this connection.
  std::map<std::uint64_t, std::size_t> unconfirmed_;  ///< The index of each message, by its tag.
  std::string returned_key_;                          ///< The routing key of the message that is being returned.
  std::map<std::size_t, std::string> returned_;       ///< The indexes of messages that no queue accepts, and why.
};

}  // namespace
}  // namespace rabbitmq

Publisher rabbitmq_publisher(const RabbitMqPublisherOptions& options) {
  const auto open = std::make_shared<rabbitmq::Channel>(options);
  return [open](std::span<const OutgoingMessage> messages) { return open->publish(messages); };
}

Republisher rabbitmq_republisher(const RabbitMqPublisherOptions& options) {
  if (!options.exchange.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "RabbitMQ: a republisher publishes to queues, through the default exchange; name no exchange");
  }
  const auto open = std::make_shared<rabbitmq::Channel>(options);
  return [open](std::span<const Republication> messages) { return open->publish(messages); };
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
