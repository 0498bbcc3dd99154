#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <amqp.h>
#include <txinbox/rabbitmq.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "connection.hpp"
#include "shared/reconnect_wait.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rabbitmq {

/// Publishes dead letters on a connection of its own: whatever the broker does because of a dead letter, the source
/// keeps the connection on which it consumes. It connects at the first dead letter.
class DeadLetterConnection {
 public:
  /// A letter, by its connection and its tag there.
  using Id = std::pair<std::uint64_t, std::uint64_t>;

  struct Result {
    bool is_confirmed = false;
    bool is_waiting = false;  ///< The letter was published, and its answer may still come.
    std::string why = {};     ///< Why it is not confirmed.
  };

  explicit DeadLetterConnection(const RabbitMqOptions& options) : options_(options) {}

  /// When a call ends.
  struct Limits {
    Clock::time_point answer;   ///< It does not wait for an answer after this time.
    Clock::time_point give_up;  ///< It ends at this time at the latest.
  };

  /// Finds out whether the user may publish dead letters. Call it before a message is taken: a message that is taken
  /// and not acknowledged counts against the delivery limit of a quorum queue, and a service without this right may be
  /// started again and again. Publishes a message that no queue gets. If the broker does not answer, for example
  /// because its memory is full, the first dead letter finds out.
  ///
  /// Errors: `Error` access_refused.
  ///
  /// @blocking until `give_up` at most.
  void check_right(Clock::time_point give_up);

  /// Publishes a letter, and waits for the answer. If the answer comes later, the next call for this letter returns it:
  /// the letter is not published twice on one connection.
  ///
  /// Errors: `Error` broker_refused or access_refused if the broker refuses all letters.
  ///
  /// @blocking as the limits say.
  Result publish(Id id, const DeadLetter& letter, const Limits& limits);

  /// Reads the answers that have come. It does not wait.
  void read_answers() noexcept;

  /// Whether an answer has come that no call of `publish` has returned.
  bool has_answer() const noexcept;

  /// Forgets the letters that wait for an answer: the source does not hold their messages any more.
  void forget() noexcept { waiting_.clear(); }

  /// Readable if an answer has come. -1 if there is no connection.
  int descriptor() const noexcept { return connection_ ? amqp_get_sockfd(connection_.get()) : -1; }

  /// @blocking until `give_up` at most.
  void close(Clock::time_point give_up) noexcept;

 private:
  enum class Answer { none, confirmed, refused, unroutable };

  /// A letter that was published.
  struct Waiting {
    std::uint64_t tag = 0;
    Clock::time_point since = {};
    Answer answer = Answer::none;
  };

  void connect(Clock::time_point give_up);
  void send(Id id, const DeadLetter& letter, Clock::time_point give_up);
  void publish(Id id, const std::string& queue, const amqp_basic_properties_t* properties, amqp_bytes_t body,
               bool mandatory, Clock::time_point give_up);
  bool read_frame(std::chrono::milliseconds wait);
  void handle_method(amqp_channel_t channel, const amqp_method_t& method);
  void answered(std::uint64_t tag, bool multiple, Answer answer);
  Result result_of(std::map<Id, Waiting>::iterator found);
  void throw_if_for_all();
  Result refused();
  void disconnect() noexcept;

  const RabbitMqOptions& options_;
  ConnectionHandle connection_;
  bool is_open_ = false;           ///< Whether the channel is open.
  bool is_blocked_ = false;        ///< The broker accepts no messages: its memory or disk is full.
  std::optional<Lost> closed_;     ///< Why the broker has closed the channel.
  std::uint64_t published_ = 0;    ///< The tag of the last letter on this channel.
  std::map<Id, Waiting> waiting_;  ///< The letters of which `publish` has not returned the answer.
  component::ReconnectWait reconnect_{std::chrono::seconds(30)};
};

}  // namespace rabbitmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
