#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/broker.hpp"
#include "sim/database/personality.hpp"
#include "sim/database/server.hpp"
#include "sim/threads.hpp"

namespace txinbox::sim {

/// How often something goes wrong between a relay and the receiver, as a share of the messages or the calls.
struct ReceiverFaults {
  double refuse = 0;             ///< The receiver refuses a message this time.
  double fail = 0;               ///< The call throws before the receiver gets anything.
  double postpone = 0;           ///< The receiver goes away before it answers for a message.
  double lose_confirmation = 0;  ///< The call throws after the receiver has taken the messages.
  double be_slow = 0;            ///< The call takes up to 14 s, and then succeeds.
  double drip = 0;               ///< The receiver answers slowly for each message, and the call ends after 14 s.

  friend bool operator==(const ReceiverFaults&, const ReceiverFaults&) = default;
};

/// The handlers of the consumers.
enum class HandlerKind {
  one,   ///< For one message.
  set,   ///< For all messages of a batch.
  pair,  ///< Both.
};

/// The contents of a world, and the faults in it. The seed decides them.
struct Plan {
  std::uint64_t seed = 0;
  const Personality* personality = nullptr;

  std::size_t consumers = 0;  ///< Services that consume with a `TxConsumer`.
  std::size_t messages = 0;   ///< The number of messages that they consume.
  std::size_t leasers = 0;    ///< Services that consume with a `LeaseConsumer`.
  std::size_t leased = 0;     ///< The number of messages that they consume.
  std::size_t relays = 0;
  std::size_t producers = 0;  ///< Services that add messages to the outbox. With a relay, consumers do this, too.
  std::size_t produced = 0;   ///< How many transactions the producers commit.
  std::size_t servers = 0;    ///< Services that answer HTTP requests.
  std::size_t requests = 0;   ///< How many requests clients have.
  std::size_t lanes = 1;
  std::size_t workers = 1;
  std::size_t batch = 1;

  std::size_t max_in_flight = 0;  ///< Of `RunOptions`. 0: its default.
  std::size_t max_waiting = 0;    ///< The same.
  int max_attempts = 0;
  std::size_t breaker = 0;  ///< `BreakerOptions::failures`.
  bool orders_by_key = false;
  BrokerKind broker_kind = BrokerKind::log;
  HandlerKind handlers = HandlerKind::one;
  bool has_heartbeat = false;  ///< Of the leases.
  bool counts_starts = false;
  bool waits_for_claims = false;
  bool has_recent_keys = false;
  bool answers_under_lease = false;  ///< The HTTP services.

  /// `RunOptions::hold_parked` of the consumers in transactions. An operator decides about their parked messages.
  bool holds_parked = false;

  SimTime faults_end{0};  ///< After this time, nothing goes wrong any more.
  double switch_rate = 0;
  double special_rate = 0;        ///< How many handlers do not just succeed.
  double stuck_rate = 0;          ///< How many of these fail until the world is healed.
  double resend_rate = 0;         ///< How often a producer sends a message again, under another id.
  SimTime kill_every{0};          ///< The mean time between two kills of a service. 0: never.
  double late_end_rate = 0;       ///< How often the database keeps the sessions of a killed service open for a time.
  SimTime stop_every{0};          ///< Between two stops of a service, as by SIGSTOP.
  SimTime end_every{0};           ///< Between two ends of a service by its stop token, as after SIGTERM.
  SimTime restart_every{0};       ///< Of the database.
  SimTime failover_every{0};      ///< To a standby that lacks the last commits.
  SimTime backup_every{0};        ///< Between two times that a backup is restored.
  SimTime jump_every{0};          ///< Of the database's clock.
  SimTime move_every{0};          ///< Of a lane, to another member.
  SimTime pause_every{0};         ///< Of the consumers in transactions, by an operator.
  SimTime erase_every{0};         ///< Between two erasures of some of their messages.
  SimTime clock_every{0};         ///< Between two jumps of the clock of the day of a service.
  SimTime session_kill_every{0};  ///< Of one session, by an administrator of the database.
  double drift = 0;               ///< By which share clocks are too fast or too slow at most.
  SimTime forget_every{0};        ///< Between two times that a broker forgets acknowledgements.
  SimTime recreate_every{0};      ///< Between two times that a topic or a queue is made anew.
  SimTime standby_every{0};  ///< Between two times that new connections lead to a standby, or the server is read-only.
  bool has_pooler = false;   ///< `Server::has_pooler`.
  bool makes_sequences_stale = false;  ///< `Server::makes_sequences_stale`.
  DatabaseFaults database = {};
  BrokerFaults broker = {};
  ReceiverFaults receiver = {};

  /// Each seed has its own set of faults and rates (swarm testing: Groce et al., ISSTA 2012). Half of the worlds lack
  /// each kind of fault, so that no kind hides another one.
  static Plan of(std::uint64_t seed);

  bool has_operator() const noexcept { return consumers > 0 && (holds_parked || pause_every > SimTime(0)); }

  /// Takes a kind of fault away. Returns false if there is no kind of this name.
  bool remove_fault(std::string_view name);

  /// One line for people.
  std::string text() const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The names of the kinds of faults.
std::span<const std::string_view> fault_names() noexcept;

/// A size of a world that somebody can choose instead of the seed.
struct PlanSize {
  std::string_view name;
  std::string_view text;  ///< The thing that it counts.
  std::size_t Plan::*member;
  std::string_view work;  ///< The kind of work that it belongs to, if it is not one of all worlds.

  /// A world without the kind of work has 0.
  std::size_t least() const noexcept { return work.empty() ? 1 : 0; }
};
std::span<const PlanSize> plan_sizes() noexcept;

}  // namespace txinbox::sim
