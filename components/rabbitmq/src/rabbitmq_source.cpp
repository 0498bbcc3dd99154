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

constexpr auto longest_step = 4s;
constexpr milliseconds longest_answer = 2s;
constexpr milliseconds longest_letters = 3s;
constexpr auto longest_source_close = 1500ms;
constexpr auto longest_reading = 1s;
constexpr auto expiring_interval = 5s;
/// A connection that lasts for this long is not one that ends because of a message that it gets.
constexpr auto long_connection = 5min;

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
  if (!is_consuming_ && max == 0) {
    sleep(wait);  // `run` ends, or has no room: a new connection would bring nothing
    return taken;
  }
  if (!is_connected(wait)) return taken;
  try {
    read_frames(Clock::now() + (received_.empty() || max == 0 ? wait : 0ms));
    queue_length_.ask(connection_.get(), options_.queue);
    publish_expiring();
  } catch (const Lost& why) {
    lost(why);
  }
  while (!received_.empty() && taken.size() < max) {
    taken.push_back(std::move(received_.front()));
    received_.pop_front();
  }
  return taken;
}

/// Makes a step of connecting if the wait for the next attempt is over. Otherwise waits.
bool RabbitMqSource::is_connected(milliseconds wait) {
  if (is_consuming_) return true;
  if (Clock::now() < reconnect_.next_try()) {
    sleep(std::min(wait, until(reconnect_.next_try())));
    if (Clock::now() < reconnect_.next_try()) return false;
  }
  try {
    connect();
  } catch (const Lost& why) {
    if (!was_connected_) throw_if_refused(why, options_.server);
    lost(why);
  }
  return is_consuming_;
}

void RabbitMqSource::connect() {
  const auto give_up = Clock::now() + longest_step;
  if (!connection_) {
    connection_ = log_in(options_.server, options_.heartbeat, give_up);
    return;
  }
  if (has_dead_letters() && !std::exchange(asked_for_right_, true)) return letters_.check_right(give_up);
  open_channel(connection_.get(), consuming_channel, give_up);
  require_queue(connection_.get(), consuming_channel, options_.queue, give_up);
  // Later, a dead letter waits for its queue, and other messages are consumed.
  if (!was_connected_ && has_dead_letters()) {
    require_queue(connection_.get(), consuming_channel, options_.dead_letters, give_up);
  }
  begin_to_consume(connection_.get(), options_, give_up);
  is_consuming_ = true;
  connected_ = Clock::now();
  ++epoch_;
  was_told_ = false;
  if (std::exchange(was_connected_, true)) ++reconnects_;
  report(SourceEventType::connected, "connected to " + options_.server.host);
}

void RabbitMqSource::lost(const Lost& why) {
  const bool was_there = is_consuming_;
  if (was_there && Clock::now() - connected_ > long_connection) reconnect_.reset();
  disconnect();
  const bool is_first = !std::exchange(was_told_, true);
  reconnect_.failed(Clock::now());
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
  is_consuming_ = false;
  reader_.reset();
  received_.clear();
  expiring_.clear();
  letters_.forget();
  tags_.clear();
  queue_length_.reset();
}

/// Reads the frames that have arrived. If no message has arrived, waits until one arrives, `wake` is called, or the
/// time is over.
void RabbitMqSource::read_frames(Clock::time_point until_time) {
  const std::size_t had = received_.size();
  const auto longest = std::max(until_time, Clock::now() + longest_reading);
  while (true) {
    while (read_frame() && Clock::now() < longest) {
    }
    letters_.read_answers();
    amqp_maybe_release_buffers(connection_.get());
    // The client's buffers are empty now, so the socket becomes readable when more data arrives.
    if (received_.size() > had || Clock::now() >= until_time) return;
    const int answers = expiring_.empty() ? -1 : letters_.descriptor();
    std::array<pollfd, 3> descriptors{pollfd{.fd = amqp_get_sockfd(connection_.get()), .events = POLLIN, .revents = 0},
                                      pollfd{.fd = woken_, .events = POLLIN, .revents = 0},
                                      pollfd{.fd = answers, .events = POLLIN, .revents = 0}};
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(until(until_time).count()));
    std::uint64_t count = 0;
    if (descriptors[1].revents != 0 && ::read(woken_, &count, sizeof count) > 0) until_time = Clock::now();
    if (descriptors[2].revents != 0) until_time = Clock::now();
  }
}

/// Returns false if no whole frame has come.
bool RabbitMqSource::read_frame() {
  amqp_frame_t frame{};
  const timeval timeout{};
  const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &timeout);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  require(status, "reading");
  handle_frame(frame);
  return true;
}

void RabbitMqSource::handle_frame(const amqp_frame_t& frame) {
  if (frame.frame_type == AMQP_FRAME_METHOD && frame.channel == QueueLength::channel) {
    queue_length_.handle(connection_.get(), frame.payload.method);
  } else if (frame.frame_type == AMQP_FRAME_METHOD) {
    handle_method(frame.payload.method);
  } else if (frame.frame_type == AMQP_FRAME_HEADER || frame.frame_type == AMQP_FRAME_BODY) {
    if (reader_.add(frame)) receive();
  }
}

void RabbitMqSource::handle_method(const amqp_method_t& method) {
  throw_if_closed(method);
  if (method.id == AMQP_BASIC_DELIVER_METHOD) {
    reader_.begin(*static_cast<const amqp_basic_deliver_t*>(method.decoded));
  } else if (method.id == AMQP_BASIC_CANCEL_METHOD) {
    throw Lost{.why = "the broker ended the consumer; was the queue deleted?"};
  }
}

void RabbitMqSource::receive() {
  const amqp_basic_deliver_t delivery = reader_.delivery();
  tags_[delivery.delivery_tag] = false;
  Incoming incoming = incoming_of(delivery, reader_.take(), options_.queue, epoch_);
  // A producer can write the header x-delivery-count itself, but not `redelivered`.
  const bool is_counted = delivery.redelivered != 0 && incoming.header("x-delivery-count");
  if (is_counted) warn_of_delivery_limit(incoming);
  // One more delivery is left then. It is needed if this process ends before the dead letter is confirmed.
  const bool is_expiring = is_counted && options_.delivery_limit > 0 && incoming.deliveries >= options_.delivery_limit;
  (is_expiring && has_dead_letters() ? expiring_ : received_).push_back(std::move(incoming));
}

void RabbitMqSource::warn_of_delivery_limit(const Incoming& incoming) {
  if (was_warned_ || (options_.delivery_limit > 0 && has_dead_letters())) return;
  was_warned_ = true;
  report(SourceEventType::warning,
         "the queue " + options_.queue + " has delivered a message " + std::to_string(incoming.deliveries) +
             " times, and counts this: if it has a delivery limit, the broker drops the message at the limit; set " +
             (options_.delivery_limit > 0 ? "dead_letters" : "delivery_limit to that limit"));
}

/// Publishes the messages that the broker would soon drop as dead letters. The answers are read by a later
/// `poll`.
void RabbitMqSource::publish_expiring() {
  if (expiring_.empty() || (Clock::now() < next_expiring_ && !letters_.has_answer())) return;
  next_expiring_ = Clock::now() + expiring_interval;
  const DeadLetterConnection::Limits limits{.answer = Clock::now(), .give_up = Clock::now() + longest_letters};
  std::deque<Incoming> left;
  for (Incoming& incoming : expiring_) {
    DeadLetterConnection::Result result{.is_waiting = true};
    if (Clock::now() < limits.give_up) {
      result = letters_.publish({epoch_, incoming.ticket}, {.incoming = &incoming, .reason = "delivery_limit"}, limits);
    }
    if (!result.is_confirmed && !result.is_waiting) report(SourceEventType::warning, result.why);
    if (result.is_confirmed) {
      report(SourceEventType::warning,
             "a message is near delivery_limit: it was published as a dead letter, because the broker would drop it");
      const Incoming* const done = &incoming;
      acknowledge({&done, 1});
      if (!is_consuming_) return;
    } else {
      left.push_back(std::move(incoming));
    }
  }
  expiring_ = std::move(left);
}

void RabbitMqSource::acknowledge(std::span<const Incoming* const> messages) {
  if (!is_consuming_) return;
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
    if (!done.empty()) reconnect_.reset();
  } catch (const Lost& why) {
    lost(why);
  }
}

void RabbitMqSource::acknowledge_now(std::uint64_t tag, bool multiple) {
  require_writable(connection_.get());
  require(amqp_basic_ack(connection_.get(), consuming_channel, tag, multiple ? 1 : 0), "acknowledging");
}

void RabbitMqSource::dead_letter(std::span<DeadLetter> letters) {
  const auto now = Clock::now();
  const DeadLetterConnection::Limits limits{.answer = now + std::min(longest_answer, options_.dead_letter_timeout),
                                            .give_up = now + longest_letters};
  for (DeadLetter& letter : letters) {
    if (!holds(*letter.incoming)) continue;
    const auto result = letters_.publish({epoch_, letter.incoming->ticket}, letter, limits);
    letter.confirmed = result.is_confirmed;
    if (!letter.confirmed) report(SourceEventType::warning, result.why);
    if (Clock::now() >= limits.give_up) return;
  }
}

bool RabbitMqSource::holds(const Incoming& message) const {
  return is_consuming_ && received_of(message).epoch == epoch_;
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
  SourceStatus status{.name = name_, .connected = is_consuming_, .lag = queue_length_.get(), .reconnects = reconnects_};
  if (tags_.size() >= options_.prefetch) status.at_end = false;  // the broker gives no more
  return status;
}

void RabbitMqSource::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  const auto give_up = Clock::now() + longest_source_close;
  if (connection_) {
    end_requests_at(connection_.get(), give_up);
    // The broker answers after it has handled the previous acknowledgements.
    if (is_consuming_) amqp_channel_close(connection_.get(), consuming_channel, AMQP_REPLY_SUCCESS);
    end_requests_at(connection_.get(), give_up);
    amqp_connection_close(connection_.get(), AMQP_REPLY_SUCCESS);
  }
  letters_.close(give_up);
  disconnect();
}

}  // namespace rabbitmq

std::unique_ptr<Source> open_rabbitmq(const RabbitMqOptions& options) {
  return std::make_unique<rabbitmq::RabbitMqSource>(options);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
