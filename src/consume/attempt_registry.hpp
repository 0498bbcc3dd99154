#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>

#include <txinbox/version.hpp>

#include "base/process.hpp"
#include "base/token.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The running attempts of this process that write a marker, on all of its pools.
///
/// If the process crashes, the markers of all its running attempts remain. Only for an exclusive attempt is it certain
/// that its message caused the crash: no other attempt runs at the same time. The registry is in memory, so an attempt
/// waits here for other attempts to end, and never for a connection.
class AttemptRegistry {
 public:
  /// The registration of one attempt. It must be destroyed on the thread that registered it; that ends the
  /// registration.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { leave(); }

    void leave() noexcept;

    /// Whether no other attempt can run at the same time.
    bool exclusive() const noexcept { return exclusive_; }

    /// Whether the attempt had to wait before it was registered.
    bool waited() const noexcept { return waited_; }

   private:
    friend class AttemptRegistry;
    Registration(AttemptRegistry& registry, bool exclusive, bool waited) noexcept
        : registry_(&registry), exclusive_(exclusive), waited_(waited) {}

    AttemptRegistry* registry_ = nullptr;
    bool exclusive_ = false;
    bool waited_ = false;
  };

  AttemptRegistry() = default;

  /// Returns the registry of this process. A child of fork() gets its own, in which no attempt runs.
  static AttemptRegistry& of_process();

  /// The token of this process, which its markers contain.
  const Token& process() const noexcept { return process_; }

  /// Registers an attempt. Attempts enter in the order in which they asked.
  ///
  /// With `exclusive`, it waits until no other attempt runs, and makes other attempts wait. Inside another attempt on
  /// the same thread, it enters at once and is never exclusive, because it would wait for its own thread.
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
      nullptr;  ///< Kept for the registrations that the forking thread holds.
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::uint64_t> waiting_;  ///< The turns of the waiting attempts, in order.
  std::uint64_t next_turn_ = 0;
  int running_ = 0;
  bool exclusive_runs_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
