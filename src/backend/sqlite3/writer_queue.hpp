#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The threads of this process that want to write one SQLite file, in the order in which they came. SQLite itself lets
/// waiting threads poll, so a busy writer can make the others wait for very long. Between processes, only SQLite's own
/// lock decides.
class WriterQueue {
 public:
  /// Returns the queue that all sessions on `file` share. An empty name (in memory, temporary) has a queue of its own.
  static std::shared_ptr<WriterQueue> of(const std::string& file);

  /// Waits for this thread's turn. Returns false after the time-out.
  bool enter(std::chrono::milliseconds timeout);

  /// Gives the turn to the next thread.
  void leave() noexcept;

 private:
  struct Waiter {
    std::condition_variable turn;
    bool is_next = false;
  };

  std::mutex mutex_;
  bool busy_ = false;
  std::deque<Waiter*> waiting_;
};

/// The turn of one writer. The destructor leaves the queue.
class WriterTurn {
 public:
  explicit WriterTurn(std::shared_ptr<WriterQueue> queue) noexcept : queue_(std::move(queue)) {}
  ~WriterTurn() { end(); }
  WriterTurn(const WriterTurn&) = delete;
  WriterTurn& operator=(const WriterTurn&) = delete;

  bool begin(std::chrono::milliseconds timeout) {
    held_ = held_ || queue_->enter(timeout);
    return held_;
  }

  void end() noexcept {
    if (held_) queue_->leave();
    held_ = false;
  }

 private:
  std::shared_ptr<WriterQueue> queue_;
  bool held_ = false;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
