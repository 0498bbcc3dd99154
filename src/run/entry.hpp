#pragma once

#include <chrono>
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

/// What a worker runs together. The sequences of its messages belong to it until it is finished.
using Job = std::vector<EntryPtr>;

/// Messages that run one after the other.
struct Sequence {
  std::string id = {};         ///< In the table of sequences; empty for the sequence of a single message.
  std::deque<Entry*> waiting;  ///< In order; without those that a worker has.
  bool is_queued = false;      ///< It is in the queue of sequences that are ready, or of those that wait.
  bool is_running = false;     ///< A worker has messages of it.
  std::chrono::steady_clock::time_point not_before = {};  ///< The end of the wait of its first message.
};

/// The messages of one lane of the broker that are not acknowledged.
struct Lane {
  std::uint64_t id;
  std::deque<Entry*> window;  ///< In the order of the broker.
  bool is_paused = false;
  bool was_touched = false;  ///< It is in the list of lanes to look at.
};

/// One delivery, from the poll to its acknowledgement. The scheduler's list of held messages owns it.
struct Entry {
  enum class State {
    waiting,      ///< In its sequence.
    running,      ///< With a worker.
    dead_letter,  ///< Decided; the broker has not confirmed the dead letter.
    done,         ///< May be acknowledged.
  };

  Incoming incoming;
  Message message;  ///< Empty while a worker has it.
  State state = State::waiting;
  std::shared_ptr<Lane> lane;          ///< None: the broker has no order, or has taken the message back.
  std::shared_ptr<Sequence> sequence;  ///< None for a message that cannot run.
  std::list<EntryPtr>::iterator held;  ///< Its place in the list of all messages that are held.
  bool is_lost = false;                ///< The broker has taken it back.
  int failures = 0;
  std::string_view reason = {};  ///< Of its dead letter.
  std::exception_ptr error = {};
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
