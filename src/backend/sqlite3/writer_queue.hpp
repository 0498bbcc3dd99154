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

/// The line of this process's threads that want to write one SQLite file. SQLite itself lets waiters
/// poll, so that a busy writer can starve the others; here the one who has waited longest is next.
/// Other processes are met at SQLite's own lock, as usual.
class WriterQueue {
 public:
  /// The queue that all sessions on `file` share; an empty name (in memory, temporary) has its own.
  static std::shared_ptr<WriterQueue> of(const std::string& file);

  /// Waits for the turn. False when the time is over.
  bool enter(std::chrono::milliseconds timeout);

  /// Hands the turn on.
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

/// One writer's place in the queue, given up at the latest by the destructor.
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
