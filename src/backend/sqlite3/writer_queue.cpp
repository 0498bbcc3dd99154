#include "backend/sqlite3/writer_queue.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

std::shared_ptr<WriterQueue> WriterQueue::of(const std::string& file) {
  struct stat status = {};
  if (file.empty() || stat(file.c_str(), &status) != 0) return std::make_shared<WriterQueue>();

  // The key is the device and the inode, so two names of one file share a queue.
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<WriterQueue>> queues;
  const std::lock_guard lock(mutex);
  std::erase_if(queues, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = queues[{status.st_dev, status.st_ino}];
  auto queue = entry.lock();
  if (!queue) {
    queue = std::make_shared<WriterQueue>();
    entry = queue;
  }
  return queue;
}

bool WriterQueue::enter(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!busy_) {
    busy_ = true;
    return true;
  }
  Waiter self;
  waiting_.push_back(&self);
  if (self.turn.wait_for(lock, timeout, [&] { return self.is_next; })) return true;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &self));
  return false;
}

void WriterQueue::leave() noexcept {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    busy_ = false;
    return;
  }
  // busy_ stays true, so that no new thread gets the turn before the next thread in the queue.
  Waiter* next = waiting_.front();
  waiting_.pop_front();
  next->is_next = true;
  next->turn.notify_one();
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
