#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "business_work.hpp"

namespace txinbox::bench {

/// Makes messages in memory. Each lane has as many as are wanted.
class GeneratedSource : public Source {
 public:
  /// Called after each acknowledgement with the number of messages that are acknowledged.
  using Acknowledged = std::function<void(long long)>;

  GeneratedSource(std::string prefix, std::size_t lanes, Acknowledged acknowledged)
      : prefix_(std::move(prefix)), lanes_(lanes), acknowledged_(std::move(acknowledged)) {}

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override {
    std::vector<Incoming> taken;
    if (max == 0 || std::ranges::all_of(lanes_, &Lane::is_paused)) {
      std::unique_lock lock(mutex_);
      woken_.wait_for(lock, wait, [&] { return std::exchange(is_woken_, false); });
      return taken;
    }
    // One message of each lane in turn, so that a poll brings messages of all lanes.
    const auto keys = std::make_shared<std::vector<std::string>>();
    keys->reserve(max);
    while (keys->size() < max) {
      const std::size_t number = next_lane_++ % lanes_.size();
      Lane& lane = lanes_[number];
      if (lane.is_paused) continue;
      const std::uint64_t place = lane.next++;
      // The number at the end chooses the account. Two messages in flight must not have the same one.
      keys->push_back(fmt::format("{}-{}-{:08}", prefix_, number, place * lanes_.size() + number));
      taken.push_back({.body = keys->back(), .lane = number, .ticket = place, .owner = keys});
    }
    return taken;
  }

  void acknowledge(std::span<const Incoming* const> messages) override {
    done_ += static_cast<long long>(messages.size());
    acknowledged_(done_);
  }

  bool has_dead_letters() const override { return true; }
  void dead_letter(std::span<DeadLetter>) override { throw std::logic_error("the loop section makes no dead letters"); }
  void pause(std::uint64_t lane) override { lanes_.at(lane).is_paused = true; }
  void resume(std::uint64_t lane) override { lanes_.at(lane).is_paused = false; }
  bool can_rewind() const override { return true; }
  void rewind(const Incoming& first) override { lanes_.at(first.lane.value()).next = first.ticket; }
  void wake() noexcept override {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
    woken_.notify_all();
  }
  SourceStatus status() override { return {.name = "generated", .connected = true, .lanes = lanes_.size()}; }
  void close() noexcept override {}

 private:
  struct Lane {
    std::uint64_t next = 0;
    bool is_paused = false;
  };

  const std::string prefix_;
  std::vector<Lane> lanes_;
  const Acknowledged acknowledged_;
  std::size_t next_lane_ = 0;
  long long done_ = 0;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

/// A handler with the business work. The first message of each of the first `stuck` lanes always fails, and is counted.
inline Handler handler_with_stuck_lanes(std::size_t stuck, std::atomic<std::size_t>& failures) {
  return [work = business_handler(), stuck, &failures](soci::session& sql, Delivery& delivery) {
    const Incoming& in = delivery.incoming();
    if (in.ticket == 0 && in.lane.value() < stuck) {
      ++failures;
      throw std::runtime_error("this lane is stuck");
    }
    work(sql, delivery);
  };
}

inline Message message_of(const Incoming& in) { return {.business_key = std::string(in.body)}; }

}  // namespace txinbox::bench
