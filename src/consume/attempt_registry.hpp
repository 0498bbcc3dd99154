#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>

#include <txinbox/version.hpp>

#include "base/own_process.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The attempts of this process that are counted from their start, on all of its pools. A process that dies
/// leaves the marks of all of them in the database. Which one killed it is certain only for an exclusive attempt:
/// no other is in flight from its beginning to its end. All of this is in memory: what an attempt waits for
/// here is another's end, and never another's connection.
class AttemptRegistry {
 public:
  /// One attempt's place among them, left when it is destroyed, on the thread that took it.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { leave(); }

    void leave() noexcept;

    /// Whether no other can be in flight.
    bool exclusive() const noexcept { return exclusive_; }

    /// Whether the place was not free at once.
    bool waited() const noexcept { return waited_; }

   private:
    friend class AttemptRegistry;
    Registration(AttemptRegistry& flight, bool exclusive, bool waited) noexcept
        : flight_(&flight), exclusive_(exclusive), waited_(waited) {}

    AttemptRegistry* flight_ = nullptr;
    bool exclusive_ = false;
    bool waited_ = false;
  };

  AttemptRegistry() = default;

  /// A child of fork() has one of its own, in which nothing is in flight.
  static AttemptRegistry& of_process();

  /// What this process's marks are known by.
  const Token& process() const noexcept { return process_; }

  /// Takes a place; who asks first gets it first. `exclusive`: waits until no other is in flight, and keeps
  /// others out. Inside another attempt on the same thread the place is free at once and never exclusive: it
  /// would wait for its own thread.
  ///
  /// Errors: `Error` acquire_timeout after `longest_wait`; stopped.
  Registration enter(bool exclusive, std::chrono::milliseconds longest_wait, const std::stop_token& stop);

 private:
  explicit AttemptRegistry(AttemptRegistry* before_fork) : before_fork_(before_fork) {}

  bool may_enter(std::uint64_t turn, bool exclusive) const noexcept;
  void leave(bool exclusive) noexcept;

  const OwnProcess owner_;
  const Token process_ = Token::random();
  [[maybe_unused]] AttemptRegistry* const before_fork_ =
      nullptr;  ///< Kept for places that the forking thread has taken.
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::uint64_t> waiting_;  ///< Their turns, the first one's first.
  std::uint64_t next_turn_ = 0;
  int in_flight_ = 0;
  bool one_is_exclusive_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
