#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <txinbox/source.hpp>

namespace txinbox::test {

/// A broker in memory. It keeps its messages when a source is destroyed, like a real broker.
///
/// With lanes it is like Kafka: each lane has an offset, up to which its messages are acknowledged. Without lanes it is
/// like RabbitMQ: a queue, to which a message that was not acknowledged returns.
class MemoryBroker {
 public:
  struct Stored {
    std::string body;
    std::optional<std::string> key = {};
    std::vector<std::pair<std::string, std::string>> headers = {};
    bool has_body = true;
  };

  struct Letter {
    std::string body;
    std::string reason;
    std::string business_key;
    std::string error_class;
    std::string consumer;
    int failures;
  };

  /// `lanes`: 0 makes a queue.
  explicit MemoryBroker(std::size_t lanes = 1) : has_lanes_(lanes > 0), lanes_(std::max<std::size_t>(lanes, 1)) {}

  void publish(std::string body) { publish(0, {.body = std::move(body)}); }
  void publish(int lane, Stored message);

  /// The offset up to which a lane is acknowledged. For a queue: how many messages are acknowledged.
  std::size_t acknowledged(std::size_t lane = 0) const;
  std::size_t acknowledged_in_all() const;

  std::vector<Letter> letters() const;

  /// How many acknowledgements were wrong: after a gap, or for a message that was not delivered. It must stay 0.
  std::size_t wrong_acknowledgements() const;

  /// While this is set, the broker confirms no dead letters.
  void refuse_dead_letters(bool refuse);

 private:
  friend class MemorySource;

  struct LaneOfBroker {
    std::deque<std::shared_ptr<Stored>> messages = {};
    std::size_t acknowledged = 0;
    std::set<std::size_t> acknowledged_of_queue = {};
  };

  const bool has_lanes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LaneOfBroker> lanes_;
  std::vector<Letter> letters_;
  std::size_t wrong_ = 0;
  bool refuses_dead_letters_ = false;
};

/// A connection to a MemoryBroker.
class MemorySource : public Source {
 public:
  explicit MemorySource(MemoryBroker& broker, bool has_dead_letters = true);

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return has_dead_letters_; }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override;
  void pause(std::uint64_t lane) override;
  void resume(std::uint64_t lane) override;
  bool can_rewind() const override { return rewinds_lanes; }
  void rewind(const Incoming& first) override;
  void give_back(const Incoming& message) override;
  void wake() noexcept override;
  SourceStatus status() override;
  void close() noexcept override { is_closed_ = true; }

  /// At the next poll, the broker takes a lane away and gives it back immediately. Then it delivers
  /// again the messages that are not acknowledged.
  void take_back(std::size_t lane);

  /// At the next poll, the source loses one message of a lane, which it has delivered. The broker delivers it again,
  /// and then what follows it.
  void lose(std::size_t lane, std::size_t place);

  /// Whether a lane can be read again from any message.
  bool rewinds_lanes = false;

  /// The next poll throws this.
  void fail(std::exception_ptr error);

  bool is_closed() const { return is_closed_; }
  std::size_t largest_poll() const { return largest_poll_; }
  std::size_t pauses() const { return pauses_; }
  std::size_t resumes() const { return resumes_; }
  std::size_t rewinds() const { return rewinds_; }

 private:
  struct Position {
    std::size_t next = 0;
    std::uint64_t epoch = 0;       ///< It distinguishes several deliveries of a message.
    std::uint64_t held_since = 0;  ///< Deliveries of earlier epochs were taken back.
    bool is_paused = false;
  };

  bool has_lost() const { return !to_take_back_.empty() || !to_lose_.empty(); }
  void lose_now();
  bool has_more() const;
  void take(std::size_t max, std::vector<Incoming>& taken);

  MemoryBroker& broker_;
  const bool has_dead_letters_;
  std::vector<Position> positions_;
  std::vector<std::size_t> to_take_back_;
  std::vector<std::pair<std::size_t, std::size_t>> to_lose_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> tickets_;  ///< The latest delivery of each message.
  std::set<std::uint64_t> gone_;                                          ///< Deliveries that were lost or given back.
  std::exception_ptr error_;
  bool is_woken_ = false;
  bool is_closed_ = false;
  std::size_t largest_poll_ = 0;
  std::size_t pauses_ = 0;
  std::size_t resumes_ = 0;
  std::size_t rewinds_ = 0;
  std::uint64_t reconnects_ = 0;
};

}  // namespace txinbox::test
