#pragma once

// A source for txinbox::run: a folder is the broker, each file in it is a message.
//
// A producer writes a file elsewhere and renames it into the folder, so that no half-written file is read. A message
// that is done is removed. A dead letter is moved to the folder `failed`.

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/source.hpp>

class FolderSource : public txinbox::Source {
 public:
  explicit FolderSource(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::vector<txinbox::Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override {
    if (!is_directory(folder_)) {
      throw txinbox::Error(txinbox::ErrorCode::broker_refused, "there is no folder " + folder_.string() + ": make it");
    }
    std::vector<txinbox::Incoming> messages = take(max);
    if (messages.empty()) {
      // A folder tells nobody of a new file: look again after the wait, at most twice a second.
      std::unique_lock lock(mutex_);
      woken_up_.wait_for(lock, std::min(wait, std::chrono::milliseconds(500)), [&] { return is_woken_; });
      is_woken_ = false;
    }
    return messages;
  }

  void acknowledge(std::span<const txinbox::Incoming* const> messages) override {
    for (const txinbox::Incoming* message : messages) {
      remove(folder_ / message->id);  // a dead letter is not there any more
      held_.erase(std::string(message->id));
    }
  }

  bool has_dead_letters() const override { return true; }

  void dead_letter(std::span<txinbox::DeadLetter> letters) override {
    create_directories(folder_ / "failed");
    for (txinbox::DeadLetter& letter : letters) {
      std::error_code error;
      rename(folder_ / letter.incoming->id, folder_ / "failed" / letter.incoming->id, error);
      letter.confirmed = !error;
    }
  }

  void wake() noexcept override {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    woken_up_.notify_one();
  }

  txinbox::SourceStatus status() override { return {.name = folder_.string(), .connected = true}; }

  void close() noexcept override {}

 private:
  struct File {
    std::string name;
    std::string bytes;
  };

  // Files that are not held yet. Nothing tells other processes which files this one holds, so one process at a time may
  // consume a folder.
  std::vector<txinbox::Incoming> take(std::size_t max) {
    std::vector<txinbox::Incoming> messages;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (messages.size() == max) break;
      const std::string name = entry.path().filename();
      if (!entry.is_regular_file() || !held_.insert(name).second) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      auto file = std::make_shared<File>(File{name, std::string(std::istreambuf_iterator<char>(stream), {})});
      messages.push_back({.body = file->bytes, .id = file->name, .owner = file});
    }
    return messages;
  }

  const std::filesystem::path folder_;
  std::set<std::string> held_;
  std::mutex mutex_;
  std::condition_variable woken_up_;
  bool is_woken_ = false;
};
