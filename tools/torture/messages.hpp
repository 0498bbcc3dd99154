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

// The messages between the broker and its workers. Each is a line of JSON. If a worker is killed while it writes, its
// line is not JSON, and is ignored.

/// One delivery of a key to a worker.
struct Arrival {
  std::uint64_t key = 0;    ///< Its index in the plan.
  unsigned copy = 0;        ///< Which copy of the key.
  unsigned tries = 0;       ///< How often this copy was delivered before.
  bool is_altered = false;  ///< Its content differs from that of the key's other copies: a conflict.
  unsigned redrives = 0;    ///< How often this copy was a dead letter, and was published again.

  bool operator==(const Arrival&) const = default;
};

/// The message of an arrival, as a broker delivers it.
Message message_of(const KeyPlan& plan, const Arrival& arrival);

/// When a worker must kill itself with SIGKILL. These are moments that a kill from outside hits very rarely.
enum class Death {
  never,
  in_handler,    ///< When the handler of the assignment's last message has run its SQL.
  near_commit,   ///< Within two milliseconds after that.
  before_reply,  ///< When everything is committed, before the broker gets the answer.
};

/// Deliveries that one call consumes.
struct Assignment {
  std::uint64_t number = 0;
  bool is_batch = false;             ///< True: by `consume_batch`. False: one arrival by `consume`.
  bool is_at_once = false;           ///< The batch has one handler for all of its new messages.
  bool skips_failures = false;       ///< The batch's `OnFailure`.
  std::uint64_t repaired_below = 0;  ///< In a storm on redrive: the handler is repaired for the keys before this one.
  Death death = Death::never;
  std::vector<Arrival> arrivals = {};
};

/// Why a delivery failed.
enum class Failure {
  none,
  by_handler,  ///< Its handler failed, or ended its transaction, on purpose.
  transient,   ///< The database was not available for it, and may be available later.
  unexpected,
};

/// How one delivery ended, and which action the consumer asked for.
struct Answer {
  Outcome outcome = Outcome::failed;
  Action action = Action::redeliver;
  std::optional<std::string> stored = {};
  Failure failure = Failure::none;
  std::string why = {};                      ///< For an unexpected failure: its description.
  std::chrono::milliseconds retry_after{0};  ///< If it is in progress: when to redeliver.
};

struct Reply {
  std::uint64_t number = 0;  ///< The number of the assignment. 0: the worker is ready.
  std::vector<Answer> answers = {};
  Counters met = {};
  std::string fatal = {};  ///< Why the worker cannot continue.
};

std::string to_line(const Assignment&);
std::string to_line(const Reply&);

/// Errors: none. If the line is incomplete or is not such a message, it returns nothing.
std::optional<Assignment> read_assignment(std::string_view line);
std::optional<Reply> read_reply(std::string_view line);

}  // namespace txinbox::torture
