#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

struct Entry;
using EntryPtr = std::shared_ptr<Entry>;

/// The messages that a worker runs together. Their sequences belong to the job until it is finished.
using Job = std::vector<EntryPtr>;

/// A number of messages, and the size of their bodies.
struct Amount {
  std::size_t messages = 0;
  std::size_t bytes = 0;

  bool is_zero() const noexcept { return messages == 0 && bytes == 0; }
  Amount& operator+=(const Amount& other) noexcept {
    messages += other.messages;
    bytes += other.bytes;
    return *this;
  }
  Amount& operator-=(const Amount& other) noexcept {
    messages -= other.messages;
    bytes -= other.bytes;
    return *this;
  }
};

/// Messages that run one after the other.
struct Sequence {
  std::string id = {};         ///< The key in the table of sequences. Empty for the sequence of a single message.
  std::deque<Entry*> waiting;  ///< The waiting messages in their order. A message that a worker has is not in this
                               ///< list.
  bool is_queued = false;      ///< The sequence is in the ready queue or in the delayed queue.
  bool is_running = false;     ///< A worker has messages of this sequence.
  std::chrono::steady_clock::time_point not_before = {};  ///< The end of the wait of its first message.

  /// Whether other messages can belong to it.
  bool has_order() const noexcept { return !id.empty(); }
};

/// The messages of one lane of the broker that are not acknowledged.
struct Lane {
  std::uint64_t id;
  std::deque<Entry*> window = {};                          ///< The messages in the order of the broker.
  Amount held = {};                                        ///< The amount that the window contains.
  std::chrono::steady_clock::time_point first_since = {};  ///< Since when its first message has been the first.
  bool is_paused = false;
  std::size_t resume_at = 0;  ///< A paused lane with this number of messages is resumed.
  bool was_touched = false;   ///< The lane is in the list of lanes that `settle` examines.
};

/// One delivery, from the poll to its acknowledgement. The scheduler's list of held messages owns it.
struct Entry {
  enum class State {
    waiting,    ///< The message waits in its sequence.
    running,    ///< A worker has the message.
    set_aside,  ///< The message has failed `max_attempts` times, and it is not known whether the handler works at all.
    dead_letter,  ///< The message becomes a dead letter. The broker has not confirmed it yet.
    done,         ///< The message may be acknowledged.
  };

  Incoming incoming;
  Message message;  ///< It is empty while a worker has the message.
  State state = State::waiting;
  std::shared_ptr<Lane> lane;          ///< Null if the broker has no order, or has taken the message back.
  std::shared_ptr<Sequence> sequence;  ///< Null for a message that cannot run.
  std::list<EntryPtr>::iterator held;  ///< Its place in the list of all messages that are held.
  std::uint64_t number = 0;            ///< Its place in the order in which the messages came.
  bool is_lost = false;                ///< The broker has taken the message back.
  bool counts_apart = false;           ///< The message has no lane, and waits for another try.
  int retries = 0;                     ///< How often it had to wait for another try, also as a dead letter.
  int failures = 0;                    ///< How often its handler has failed.
  int outages = 0;                     ///< How often it has met an error as of an outage, since its last other error.
  std::uint64_t job = 0;               ///< The number of its latest job.
  std::uint64_t outage_after = 0;      ///< How many jobs had begun when it last met such an error.
  std::uint64_t outages_seen = 0;      ///< How many outages there had been when its latest job began.
  std::exception_ptr suspected = {};   ///< Such an error of its latest job, if it may be the reason of it.
  bool counts_later = false;           ///< A failure of its present job is undecided. See `Breaker`.
  bool has_failed = false;             ///< It had failures that were undecided or not counted when its job began.
  bool handler_failed = false;         ///< Its latest job has failed in a way that the consumer counts.
  bool failed_before_handler = false;  ///< Its latest job has failed, and its handler did not run.
  bool is_held = false;                ///< It is parked, and waits for the decision of an operator.
  int asks = 0;                        ///< How often the database was asked for this decision.
  std::vector<std::exception_ptr> undecided = {};  ///< Failures that count only if the handler works for others.
  std::vector<std::exception_ptr> uncounted = {};  ///< Failures that the consumer counts before the message runs again.
  std::string_view reason = {};                    ///< Why the message is a dead letter.
  bool letter_failed = false;  ///< It is a dead letter that the broker has not confirmed when it was published.
  std::exception_ptr error = {};

  /// Whether it may be the reason of an error as of an outage.
  bool is_suspect() const noexcept { return outages > 0; }

  /// Whether its handler has failed. If one message of a job fails, all of them run again. So messages that have failed
  /// have jobs of their own.
  bool has_failed_before() const noexcept { return failures > 0; }

  /// Whether it must be the only message of its job. A failure can stay uncounted for a while, for example if another
  /// delivery has the key.
  bool runs_alone() const noexcept { return is_suspect() || is_held || !undecided.empty() || !uncounted.empty(); }

  Amount amount() const noexcept { return {.messages = 1, .bytes = incoming.body.size()}; }
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
