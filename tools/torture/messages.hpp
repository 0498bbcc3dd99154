#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/message.hpp>
#include <txinbox/result.hpp>

#include "torture/counters.hpp"
#include "torture/plan.hpp"

namespace txinbox::torture {

// The messages between the broker and its workers. Each is a line of JSON. A line that a killed worker could not finish
// is not JSON, and is ignored.

/// One delivery of a key to a worker.
struct Arrival {
  std::uint64_t key = 0;    ///< Its index in the plan.
  unsigned copy = 0;        ///< Which of the key's copies.
  unsigned tries = 0;       ///< How often this copy was delivered before.
  bool is_altered = false;  ///< Carries another content than the key's other copies: a conflict.

  bool operator==(const Arrival&) const = default;
};

/// The message of an arrival, as a broker hands it out.
Message message_of(const KeyPlan& plan, const Arrival& arrival);

/// When a worker is to kill itself, with SIGKILL. What a kill from outside hardly ever hits.
enum class Death {
  never,
  in_handler,    ///< When the handler of the assignment's last message has run its SQL.
  near_commit,   ///< Within two milliseconds after that.
  before_reply,  ///< When everything is committed, and the broker does not know yet.
};

/// Deliveries that are consumed by one call.
struct Assignment {
  std::uint64_t number = 0;
  bool is_batch = false;        ///< By `consume_batch`, and else by `consume`: of one arrival.
  bool is_at_once = false;      ///< The batch has one handler for all of its new messages.
  bool skips_failures = false;  ///< The batch's `OnFailure`.
  Death death = Death::never;
  std::vector<Arrival> arrivals = {};
};

/// Why a delivery failed.
enum class Failure {
  none,
  by_handler,  ///< Its handler failed, or destroyed its transaction, on purpose.
  transient,   ///< The database could not be used for it, and may be later.
  unexpected,
};

/// How one delivery ended, and what the consumer said to do.
struct Answer {
  Outcome outcome = Outcome::failed;
  Action action = Action::redeliver;
  std::optional<std::string> stored = {};
  Failure failure = Failure::none;
  std::string why = {};                      ///< Of an unexpected failure: in words.
  std::chrono::milliseconds retry_after{0};  ///< Of one that is in progress.
};

struct Reply {
  std::uint64_t number = 0;  ///< Of the assignment; 0 when the worker says that it is ready.
  std::vector<Answer> answers = {};
  Counters met = {};
  std::string fatal = {};  ///< The worker cannot go on: in words.
};

std::string to_line(const Assignment&);
std::string to_line(const Reply&);

/// Errors: none for a line that is not whole or not one of ours: it gives nothing.
std::optional<Assignment> read_assignment(std::string_view line);
std::optional<Reply> read_reply(std::string_view line);

}  // namespace txinbox::torture
