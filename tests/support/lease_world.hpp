#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/lease_consumer.hpp>
#include <txinbox/lease_store.hpp>

#include "lease/lease_clock.hpp"
#include "lease/lease_timer.hpp"
#include "lease/store_leases.hpp"

namespace txinbox::test {

/// An event at a point of a delivery.
enum class LeaseTwist {
  lose_request,     ///< The store gets no request, and the caller gets an error. Only at a call of the store.
  lose_reply,       ///< The store does the step, and the caller gets an error. Only at a call of the store.
  slow_reply,       ///< The store does the step, and the lease ends before the reply. Only at a call of the store.
  part_of_lease,    ///< Some time passes, less than the lease.
  whole_lease,      ///< So much time passes that the lease ends.
  valid_for,        ///< `valid_for` passes.
  other_claims,     ///< Another worker asks for the lease.
  other_completes,  ///< Another worker completes the message, if it has the lease.
  other_fails,      ///< Another worker's attempt fails, if it has the lease.
  forget,           ///< An operator removes the key.
  stop,             ///< The consumer is stopped.
  delivery,         ///< A second delivery of the key runs from its start to its end.
  other_content,    ///< The same, with other content.
};

inline constexpr std::array all_lease_twists = {
    LeaseTwist::lose_request, LeaseTwist::lose_reply, LeaseTwist::slow_reply,   LeaseTwist::part_of_lease,
    LeaseTwist::whole_lease,  LeaseTwist::valid_for,  LeaseTwist::other_claims, LeaseTwist::other_completes,
    LeaseTwist::other_fails,  LeaseTwist::forget,     LeaseTwist::stop,         LeaseTwist::delivery,
    LeaseTwist::other_content};

std::string_view to_string(LeaseTwist) noexcept;

/// A twist at one point. The points are counted from 0. Each call of the store is a point, and so are the event
/// lease_taken_over, the start of an attempt, and the handler.
struct LeaseTwistAt {
  int point;
  LeaseTwist what;
};

/// The act of the handler.
enum class HandlerKind {
  succeeds,
  stores,    ///< It stores a result.
  renews,    ///< It renews its lease, then stores a result.
  fails,     ///< It throws an error that counts.
  rejects,   ///< It throws `Error` rejected.
  postpones  ///< It throws `RetryLater`.
};

inline constexpr std::array all_handlers = {HandlerKind::succeeds, HandlerKind::stores,  HandlerKind::renews,
                                            HandlerKind::fails,    HandlerKind::rejects, HandlerKind::postpones};

std::string_view to_string(HandlerKind) noexcept;

/// A store, a clock and the deliveries of one key. The store follows the rules of `LeaseStore`. The world checks what
/// the deliveries ask for and what they return. Nothing here sleeps.
class LeaseWorld final : public LeaseStore, public detail::LeaseClock {
 public:
  static constexpr std::chrono::milliseconds lease{1'000}, valid_for{10'000};
  static constexpr int max_attempts = 2, tries = 2;

  explicit LeaseWorld(HandlerKind handler);

  /// Runs two deliveries, one after the other, to which these twists happen. Then it lets the lease end, and runs a
  /// delivery whose handler succeeds.
  void run(const std::vector<LeaseTwistAt>& twists);

  /// The points that there were: whether each is a call of the store.
  const std::vector<bool>& points() const noexcept { return points_; }

  /// The defect that was found. Empty if there is none.
  const std::string& problem() const noexcept { return problem_; }

  /// The result of each delivery, in the order in which they ended: an outcome, or the class of the error.
  std::vector<std::string> ends;

  LeaseAnswer claim(const LeaseRequest&) override;
  bool renew(const LeaseRequest&, std::int64_t fence) override;
  bool complete(const LeaseRequest&, std::int64_t fence, const std::optional<std::string>& result) override;
  bool fail(const LeaseRequest&, std::int64_t fence, const LeaseFailure&) override;
  Clock::time_point now() const noexcept override { return now_; }

 private:
  using Time = Clock::time_point;

  enum class RowState { in_progress, consumed, parked };

  struct Row {
    RowState state = RowState::in_progress;
    std::string token, hash;
    std::int64_t fence = 0;
    Time ends{}, consumed_at{};
    bool released = false;
    int failures = 0;
    std::optional<std::string> result = {};
  };

  /// The facts that the store and the handler know of one delivery.
  struct Call {
    HandlerKind handler;
    std::string content;
    Time began;
    bool began_stopped;
    std::string token = {}, hash = {};
    std::int64_t fence = 0;  ///< Of the last lease that the store has granted.
    int handlers = 0, failures = 0, taken_over_events = 0;
    bool taken_over = false;  ///< The store has answered this.
    bool parked = false;      ///< The store has answered this.
    bool forgotten = false;   ///< An operator has removed the key during the call.
    int lost = 0;             ///< How many calls of the store were lost since the last answer.
    bool renewing = false;    ///< The last call was a renewal, which is not tried again.
    bool slow = false;        ///< A call of the store took as long as the lease.
    bool counts = false;      ///< The handler has thrown an error that counts.
    std::optional<std::string> stored = {};
  };

  class Observer;

  void start();
  void deliver(const std::string& content, HandlerKind handler);
  void handle(Call&, Lease&);
  void check_lease(const Call&, const Lease&);
  void check_result(const Call&, const Result&);
  void check_error(const Call&, const std::exception_ptr&);
  void point(bool of_store = false);
  void happen(LeaseTwist);
  void advance(std::chrono::milliseconds);
  void other_ends(bool succeeds);
  bool holds(std::string_view token, std::int64_t fence) const;

  /// Does a step of the store, or not, and loses its reply, or not.
  template <class Step>
  auto step(const LeaseRequest&, const Step&);
  LeaseAnswer claim_step(const LeaseRequest&);
  bool fail_step(const LeaseRequest&, std::int64_t fence, const LeaseFailure&);
  void wrong(const std::string& text);

  const HandlerKind handler_;
  std::vector<LeaseTwistAt> twists_;
  Time now_{std::chrono::hours(1)};
  std::optional<Row> row_;
  std::int64_t last_fence_ = 0;
  std::set<std::pair<std::string, std::int64_t>> completions_;  ///< The token and the fence of each completion.
  std::set<std::string> tokens_;
  std::stop_source stop_;
  std::shared_ptr<detail::LeaseTimer> timer_;
  LeaseTerms terms_{.length = lease};
  std::unique_ptr<detail::StoreLeases> leases_;
  std::vector<Call*> calls_;  ///< The deliveries that run: each is inside the one before it.
  std::optional<LeaseTwist> twist_;
  std::vector<bool> points_;  ///< Whether each point is a call of the store.
  std::string problem_;
};

}  // namespace txinbox::test
