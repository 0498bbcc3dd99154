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

/// What a world has, and what goes wrong in it. The seed decides it.
struct Plan {
  std::uint64_t seed = 0;
  const Personality* personality = nullptr;
  std::size_t lanes = 1;
  std::size_t processes = 1;
  std::size_t workers = 1;
  std::size_t batch = 1;
  std::size_t messages = 0;
  std::size_t max_in_flight = 0;  ///< Of `RunOptions`. 0: its default.
  std::size_t max_waiting = 0;    ///< The same.
  SimTime faults_end{0};          ///< After this time, nothing goes wrong any more.
  double switch_rate = 0;

  double resend_rate = 0;    ///< How often a producer sends a message again, under another id.
  SimTime kill_every{0};     ///< The mean time between two kills of a service. 0: never.
  SimTime stop_every{0};     ///< Between two stops of a service, as by SIGSTOP.
  SimTime restart_every{0};  ///< Of the database.
  SimTime move_every{0};     ///< Of a lane, to another member.
  DatabaseFaults database = {};
  BrokerFaults broker = {};

  /// Each seed has its own set of faults and rates (swarm testing: Groce et al., ISSTA 2012). Half of the worlds lack
  /// each kind of fault, so that no kind hides another one.
  static Plan of(std::uint64_t seed);

  /// Takes a kind of fault away. Returns false if there is no kind of this name.
  bool remove_fault(std::string_view name);

  /// One line for people.
  std::string text() const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

/// The names of the kinds of faults.
std::span<const std::string_view> fault_names() noexcept;

}  // namespace txinbox::sim
