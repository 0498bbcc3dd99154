#include "dead_letter_connection.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <sys/socket.h>

#include <amqp_framing.h>
#include <txinbox/error.hpp>

#include "rabbitmq_delivery.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr amqp_channel_t only_channel = 1;
constexpr milliseconds longest_close = 500ms;

milliseconds left_until(Clock::time_point time) {
  return std::max(0ms, std::chrono::ceil<milliseconds>(time - Clock::now()));
}

/// Shuts a socket down if this object lives too long: rabbitmq-c waits without a limit for a broker that does not read.
class WriteLimit {
 public:
  WriteLimit(int descriptor, milliseconds limit)
      : thread_([this, descriptor, limit](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          (void)changed_.wait_for(lock, stop, limit, [] { return false; });
          if (!stop.stop_requested()) ::shutdown(descriptor, SHUT_RDWR);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace

void DeadLetterConnection::check_right(Clock::time_point give_up) {
  const auto latest = give_up - longest_close;
  try {
    connect(latest);
    constexpr Id question{};  // no letter has this id: connections are counted from 1
    // No queue has an empty name.
    publish(question, {}, nullptr, amqp_empty_bytes, false, latest);
    const auto& asked = waiting_[question];
    while (is_open_ && asked.answer == Answer::none && !is_blocked_ && Clock::now() < latest) {
      (void)read_frame(left_until(latest));
    }
  } catch (const Lost&) {
    return disconnect();
  }
  throw_if_for_all();
  close(give_up);
}

DeadLetterConnection::Result DeadLetterConnection::publish(Id id, const DeadLetter& letter, const Limits& limits) {
  try {
    read_answers();
    auto found = waiting_.find(id);
    if (found != waiting_.end()) {
      if (found->second.answer != Answer::none) return result_of(found);
      if (closed_) return refused();
      if (is_blocked_ || Clock::now() - found->second.since < options_.dead_letter_timeout) return result_of(found);
      disconnect();
    }
    // Another letter may have got this answer. It is the same for all letters, so it must not be forgotten.
    throw_if_for_all();
    if (!is_open_) connect(limits.give_up);
    send(id, letter, limits.give_up);
    found = waiting_.find(id);
    while (is_open_ && found->second.answer == Answer::none && Clock::now() < limits.answer) {
      (void)read_frame(left_until(limits.answer));
    }
    if (is_open_) return result_of(found);
  } catch (const Lost& why) {
    disconnect();
    return {.why = "a dead letter could not be published: " + why.why};
  }
  return refused();
}

/// Throws if the broker has closed the channel for a reason that holds for all letters, until somebody changes a right
/// or creates something.
void DeadLetterConnection::throw_if_for_all() {
  if (!closed_ || (closed_->reply_code != AMQP_ACCESS_REFUSED && closed_->reply_code != AMQP_NOT_FOUND)) return;
  waiting_.clear();
  const Lost why = *std::exchange(closed_, std::nullopt);
  if (why.reply_code == AMQP_ACCESS_REFUSED) {
    throw Error(ErrorCode::access_refused, "RabbitMQ: " + why.why +
                                               "; give the user the right to write to the exchange amq.default, which "
                                               "dead letters need");
  }
  throw Error(ErrorCode::broker_refused, "RabbitMQ: " + why.why + "; create what dead letters are sent to");
}

/// The broker has closed the channel because of a letter.
DeadLetterConnection::Result DeadLetterConnection::refused() {
  throw_if_for_all();
  waiting_.clear();
  return {.why = "a dead letter was refused: " + std::exchange(closed_, std::nullopt)->why};
}

/// Takes the answer of a letter.
DeadLetterConnection::Result DeadLetterConnection::result_of(std::map<Id, Waiting>::iterator found) {
  const Answer answer = found->second.answer;
  if (answer != Answer::none) waiting_.erase(found);
  switch (answer) {
    case Answer::confirmed:
      return {.is_confirmed = true};
    case Answer::refused:
      return {.why = "the broker has refused a dead letter (nack)"};
    case Answer::unroutable:
      return {.why = "no queue has accepted a dead letter; does the queue " + options_.dead_letters + " exist?"};
    case Answer::none:
    default:
      return {.is_waiting = true,
              .why = is_blocked_ ? "the broker accepts no dead letter: its memory or its disk is full"
                                 : "the broker has not confirmed a dead letter in time"};
  }
}

void DeadLetterConnection::connect(Clock::time_point give_up) {
  if (Clock::now() < reconnect_.next_try()) throw Lost{.why = "the broker could not be reached a moment ago"};
  try {
    if (!connection_) {
      // Without heartbeats, nothing is written while no letter is: a write could wait for the broker.
      connection_ = log_in(options_.server, no_heartbeat, give_up);
    }
    open_channel(connection_.get(), only_channel, give_up);
    ask_for_confirmations(connection_.get(), only_channel, give_up);
  } catch (const Lost&) {
    reconnect_.failed(Clock::now());
    throw;
  }
  waiting_.clear();
  closed_.reset();
  published_ = 0;
  reconnect_.reset();
  is_open_ = true;
}

void DeadLetterConnection::send(Id id, const DeadLetter& letter, Clock::time_point give_up) {
  const DeadLetterProperties with(letter, options_.queue,
                                  static_cast<std::size_t>(amqp_get_frame_max(connection_.get())));
  // The message is mandatory. Otherwise the broker would confirm and drop a message for a queue that does not exist.
  publish(id, options_.dead_letters, &with.properties, received_of(*letter.incoming).message.body, true, give_up);
}

/// Publishes a message to the default exchange, which gives it to the queue of this name.
void DeadLetterConnection::publish(Id id, const std::string& queue, const amqp_basic_properties_t* properties,
                                   amqp_bytes_t body, bool mandatory, Clock::time_point give_up) {
  waiting_[id] = {.tag = ++published_, .since = Clock::now()};
  const WriteLimit limit(amqp_get_sockfd(connection_.get()), left_until(give_up));
  require(amqp_basic_publish(connection_.get(), only_channel, amqp_empty_bytes, bytes_of(queue), mandatory ? 1 : 0, 0,
                             properties, body),
          "publishing a dead letter");
}

void DeadLetterConnection::read_answers() noexcept {
  if (!connection_) return;
  try {
    const auto give_up = Clock::now() + 1s;
    while (Clock::now() < give_up && read_frame(0ms)) {
    }
    amqp_maybe_release_buffers(connection_.get());
  } catch (const Lost&) {
    disconnect();  // the next letter finds out whether this lasts
  }
}

bool DeadLetterConnection::has_answer() const noexcept {
  return closed_ || std::ranges::any_of(waiting_, [](const auto& each) { return each.second.answer != Answer::none; });
}

/// Returns false if no frame came in time. The content of a returned message is ignored.
bool DeadLetterConnection::read_frame(milliseconds wait) {
  amqp_frame_t frame{};
  const timeval timeout = timeval_of(wait);
  const int status = amqp_simple_wait_frame_noblock(connection_.get(), &frame, &timeout);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  require(status, "reading");
  if (frame.frame_type == AMQP_FRAME_METHOD) handle_method(frame.channel, frame.payload.method);
  return true;
}

void DeadLetterConnection::handle_method(amqp_channel_t channel, const amqp_method_t& method) {
  switch (method.id) {
    case AMQP_BASIC_RETURN_METHOD:
      // All letters have the same exchange and queue, so this is true for each that has no answer.
      answered(published_, true, Answer::unroutable);
      break;
    case AMQP_BASIC_ACK_METHOD: {
      const auto& ack = *static_cast<const amqp_basic_ack_t*>(method.decoded);
      answered(ack.delivery_tag, ack.multiple != 0, Answer::confirmed);
      break;
    }
    case AMQP_BASIC_NACK_METHOD: {
      const auto& nack = *static_cast<const amqp_basic_nack_t*>(method.decoded);
      answered(nack.delivery_tag, nack.multiple != 0, Answer::refused);
      break;
    }
    case AMQP_CONNECTION_BLOCKED_METHOD:
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      is_blocked_ = method.id == AMQP_CONNECTION_BLOCKED_METHOD;
      break;
    case AMQP_CHANNEL_CLOSE_METHOD:
      closed_ = closed_by_broker(method);
      is_open_ = false;
      accept_close(connection_.get(), channel);
      break;
    default:
      throw_if_closed(method);
      break;
  }
}

/// Records an answer. The first answer counts: the broker returns a message before it confirms it.
void DeadLetterConnection::answered(std::uint64_t tag, bool multiple, Answer answer) {
  for (auto& [id, waiting] : waiting_) {
    const bool is_meant = multiple ? waiting.tag <= tag : waiting.tag == tag;
    if (is_meant && waiting.answer == Answer::none) waiting.answer = answer;
  }
}

void DeadLetterConnection::disconnect() noexcept {
  connection_.reset();
  is_open_ = false;
  is_blocked_ = false;
  closed_.reset();
  waiting_.clear();
}

void DeadLetterConnection::close(Clock::time_point give_up) noexcept {
  if (connection_) {
    end_requests_at(connection_.get(), give_up);
    amqp_connection_close(connection_.get(), AMQP_REPLY_SUCCESS);
  }
  disconnect();
}

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
