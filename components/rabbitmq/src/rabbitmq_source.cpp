#include "rabbitmq_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <txinbox/error.hpp>

#include "rabbitmq_delivery.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds first_backoff = 200ms;
constexpr milliseconds longest_backoff = 30s;
constexpr auto lag_interval = 10s;
constexpr auto longest_close = 3s;

milliseconds until(std::chrono::steady_clock::time_point time) {
  return std::max(0ms, std::chrono::ceil<milliseconds>(time - std::chrono::steady_clock::now()));
}

}  // namespace

RabbitMqSource::RabbitMqSource(const RabbitMqOptions& options)
    : options_(options), name_("rabbitmq " + options.queue), woken_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (woken_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  try {
    check(options);
  } catch (...) {
    ::close(woken_);
    throw;
  }
}

RabbitMqSource::~RabbitMqSource() {
  close();
  ::close(woken_);
}

std::vector<Incoming> RabbitMqSource::poll(std::size_t max, milliseconds wait) {
  std::vector<Incoming> taken;
  if (!is_connected(wait)) return taken;
  try {
    read_frames(Clock::now() + (received_.empty() || max == 0 ? wait : 0ms));
    ask_for_lag();
  } catch (const Lost& why) {
    lost(why);
  }
  while (!received_.empty() && taken.size() < max) {
    taken.push_back(std::move(received_.front()));
    received_.pop_front();
  }
  return taken;
}

/// Connects if the wait for the next attempt is over. Otherwise waits.
bool RabbitMqSource::is_connected(milliseconds wait) {
  if (connection_) return true;
  if (Clock::now() < next_try_) {
    sleep(std::min(wait, until(next_try_)));
    if (Clock::now() < next_try_) return false;
  }
  try {
    connection_ = connect(options_);
  } catch (const Lost& why) {
    if (!was_connected_) throw_if_refused(why, options_);
    lost(why);
    return false;
  }
  ++epoch_;
  published_ = 0;
  publishing_is_open_ = has_dead_letters();
  backoff_ = 0ms;
  next_lag_ = Clock::now();
  if (std::exchange(was_connected_, true)) ++reconnects_;
  report(SourceEventType::connected, "connected to " + options_.host);
  return true;
}

void RabbitMqSource::lost(const Lost& why) {
  const bool was_there = connection_ != nullptr;
  disconnect();
  const bool is_first = backoff_ == 0ms;
  backoff_ = std::clamp(backoff_ * 2, first_backoff, longest_backoff);
  next_try_ = Clock::now() + backoff_ / 2 +
              milliseconds(std::uniform_int_distribution<milliseconds::rep>(0, backoff_.count() / 2)(random_));
  if (was_there) {
    // The broker closes a channel with this code for two reasons: a tag that is acknowledged twice, and the
    // consumer_timeout. This source never acknowledges a tag twice.
    const bool is_timeout = why.reply_code == AMQP_PRECONDITION_FAILED;
    report(
        SourceEventType::disconnected,
        why.why +
            (is_timeout ? "; a message was unacknowledged for longer than the broker's consumer_timeout: raise it, or "
                          "limit the retries with max_attempts"
                        : "") +
            "; connecting again");
  } else if (is_first || why.reply_code != 0) {
    report(SourceEventType::warning, why.why + "; the source keeps trying");
  }
}

void RabbitMqSource::disconnect() {
  connection_.reset();
  received_.clear();
  tags_.clear();
  lag_.reset();
}

/// Reads the frames that have arrived. If no message has arrived, waits until one arrives, `wake` is called, or the
/// time is over.
void RabbitMqSource::read_frames(Clock::time_point until_time) {
  const std::size_t had = received_.size();
  while (true) {
    while (read_frame(0ms)) {
    }
    amqp_maybe_release_buffers(connection_.get());
    // The client's buffers are empty now, so the socket becomes readable when more data arrives.
    if (received_.size() > had || Clock::now() >= until_time) return;
    std::array<pollfd, 2> descriptors{pollfd{.fd = amqp_get_sockfd(connection_.get()), .events = POLLIN, .revents = 0},
                                      pollfd{.fd = woken_, .events = POLLIN, .revents = 0}};
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(until(until_time).count()));
    std::uint64_t count = 0;
    if (descriptors[1].revents != 0 && ::read(woken_, &count, sizeof count) > 0) until_time = Clock::now();
  }
}

/// Returns false if no frame came in time.
bool RabbitMqSource::read_frame(milliseconds wait) {
  amqp_frame_t frame{};
  const timeval timeout = timeval_of(wait);
  const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &timeout);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  require(status, "reading");
  if (frame.frame_type == AMQP_FRAME_METHOD) handle_method(frame.channel, frame.payload.method);
  return true;
}

void RabbitMqSource::handle_method(amqp_channel_t channel, const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_DELIVER_METHOD:
      receive(*static_cast<const amqp_basic_deliver_t*>(method.decoded));
      break;
    case AMQP_BASIC_CANCEL_METHOD:
      throw Lost{.why = "the broker ended the consumer; was the queue deleted?"};
    case AMQP_BASIC_RETURN_METHOD: {
      amqp_message_t message{};
      require(amqp_read_message(connection_.get(), channel, &message, 0), "reading a returned message");
      amqp_destroy_message(&message);
      was_returned_ = true;
      break;
    }
    case AMQP_BASIC_ACK_METHOD:
      answered(static_cast<const amqp_basic_ack_t*>(method.decoded)->delivery_tag,
               was_returned_ ? Confirmation::refused : Confirmation::confirmed);
      break;
    case AMQP_BASIC_NACK_METHOD:
      answered(static_cast<const amqp_basic_nack_t*>(method.decoded)->delivery_tag, Confirmation::refused);
      break;
    case AMQP_CHANNEL_CLOSE_METHOD:
      if (channel == publishing_channel) {
        publishing_was_closed(method);
        break;
      }
      [[fallthrough]];
    case AMQP_CONNECTION_CLOSE_METHOD:
      throw_if_closed(method);
      break;
    default:
      break;
  }
}

/// Records the answer for the last dead letter. An answer for an earlier dead letter is late, and is ignored.
void RabbitMqSource::answered(std::uint64_t tag, Confirmation confirmation) {
  if (tag == published_) confirmation_ = confirmation;
}

/// Only this channel is opened again. A new connection would return all messages to the broker, and a quorum queue
/// would count a delivery for each of them.
void RabbitMqSource::publishing_was_closed(const amqp_method_t& method) {
  publishing_is_open_ = false;
  confirmation_ = Confirmation::refused;
  const std::string why = closed_by_broker(method).why;
  amqp_channel_close_ok_t answer{};
  require(amqp_send_method(connection_.get(), publishing_channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &answer),
          "closing a channel");
  report(SourceEventType::warning, "a dead letter was refused: " + why);
}

void RabbitMqSource::open_publishing(Clock::time_point give_up) {
  open_channel(connection_.get(), publishing_channel, give_up);
  ask_for_confirmations(connection_.get(), publishing_channel, give_up);
  published_ = 0;
  publishing_is_open_ = true;
}

void RabbitMqSource::receive(const amqp_basic_deliver_t& delivery) {
  const amqp_basic_deliver_t copy = delivery;  // reading more frames may release the frame's memory
  amqp_message_t message{};
  require(amqp_read_message(connection_.get(), consuming_channel, &message, 0), "reading a message");
  tags_[copy.delivery_tag] = false;
  received_.push_back(incoming_of(copy, message, options_.queue, epoch_));
}

void RabbitMqSource::acknowledge(std::span<const Incoming* const> messages) {
  if (!connection_) return;
  std::vector<std::uint64_t> done;
  for (const Incoming* message : messages) {
    const auto found = tags_.find(message->ticket);
    if (!holds(*message) || found == tags_.end())
      continue;  // the broker would close the channel if a tag were acknowledged twice
    found->second = true;
    done.push_back(message->ticket);
  }
  try {
    // One acknowledgement covers all messages before the first message that is not done.
    std::uint64_t prefix = 0;
    while (!tags_.empty() && tags_.begin()->second) {
      prefix = tags_.begin()->first;
      tags_.erase(tags_.begin());
    }
    if (prefix != 0) acknowledge_now(prefix, true);
    for (const std::uint64_t tag : done) {
      if (tag > prefix && tags_.erase(tag) > 0) acknowledge_now(tag, false);
    }
  } catch (const Lost& why) {
    lost(why);
  }
}

void RabbitMqSource::acknowledge_now(std::uint64_t tag, bool multiple) {
  require(amqp_basic_ack(connection_.get(), consuming_channel, tag, multiple ? 1 : 0), "acknowledging");
}

/// Publishes the dead letters one after the other: when the broker returns a message, the source cannot tell which
/// publish has failed.
void RabbitMqSource::dead_letter(std::span<DeadLetter> letters) {
  if (!connection_) return;
  try {
    for (DeadLetter& letter : letters) {
      if (!holds(*letter.incoming)) continue;
      const Confirmation confirmation = publish(letter);
      letter.confirmed = confirmation == Confirmation::confirmed;
      if (letter.confirmed) continue;
      // If the broker has closed the channel, this was already reported.
      if (publishing_is_open_) {
        report(SourceEventType::warning,
               confirmation == Confirmation::none
                   ? "the broker has not confirmed a dead letter in time"
                   : "the broker has refused a dead letter; does the queue " + options_.dead_letters + " exist?");
      }
      return;
    }
  } catch (const Lost& why) {
    lost(why);
  }
}

RabbitMqSource::Confirmation RabbitMqSource::publish(const DeadLetter& letter) {
  const DeadLetterProperties with(letter);
  const auto give_up = Clock::now() + options_.dead_letter_timeout;
  if (!publishing_is_open_) open_publishing(give_up);
  was_returned_ = false;
  confirmation_ = Confirmation::none;
  // The message is mandatory. Otherwise the broker would confirm and drop a message for a queue that does not exist.
  require(amqp_basic_publish(connection_.get(), publishing_channel, amqp_empty_bytes, bytes_of(options_.dead_letters),
                             1, 0, &with.properties, received_of(*letter.incoming).message.body),
          "publishing a dead letter");
  ++published_;
  while (confirmation_ == Confirmation::none && Clock::now() < give_up) read_frame(until(give_up));
  return confirmation_;
}

void RabbitMqSource::ask_for_lag() {
  if (Clock::now() < next_lag_) return;
  next_lag_ = Clock::now() + lag_interval;
  end_requests_at(connection_.get(), Clock::now() + longest_request);
  const amqp_queue_declare_ok_t* queue =
      amqp_queue_declare(connection_.get(), consuming_channel, bytes_of(options_.queue), 1, 0, 0, 0, amqp_empty_table);
  require(amqp_get_rpc_reply(connection_.get()), "asking for the length of the queue");
  if (queue != nullptr) lag_ = queue->message_count;
}

bool RabbitMqSource::holds(const Incoming& message) const {
  return connection_ != nullptr && received_of(message).epoch == epoch_;
}

void RabbitMqSource::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(woken_, &one, sizeof one);  // fails only if `wake` was called very often, and then nothing is lost
}

void RabbitMqSource::sleep(milliseconds wait) {
  pollfd descriptor{.fd = woken_, .events = POLLIN, .revents = 0};
  ::poll(&descriptor, 1, static_cast<int>(wait.count()));
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(woken_, &count, sizeof count);
}

SourceStatus RabbitMqSource::status() {
  return {.name = name_, .connected = connection_ != nullptr, .lag = lag_, .reconnects = reconnects_};
}

void RabbitMqSource::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  if (connection_) {
    const auto give_up = Clock::now() + longest_close;
    end_requests_at(connection_.get(), give_up);
    // The broker answers after it has handled the previous acknowledgements.
    amqp_channel_close(connection_.get(), consuming_channel, AMQP_REPLY_SUCCESS);
    end_requests_at(connection_.get(), give_up);
    amqp_connection_close(connection_.get(), AMQP_REPLY_SUCCESS);
  }
  disconnect();
}

}  // namespace rabbitmq

std::unique_ptr<Source> open_rabbitmq(const RabbitMqOptions& options) {
  return std::make_unique<rabbitmq::RabbitMqSource>(options);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
