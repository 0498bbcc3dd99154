#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "torture/broker.hpp"
#include "torture/dead_letters.hpp"
#include "torture/dice.hpp"
#include "torture/imbalance.hpp"
#include "torture/worker_process.hpp"

namespace txinbox::torture {

/// The operators of a storm: processes that run `redrive`. They ask, and the broker answers. They also repair the
/// handler from time to time.
class Operators {
 public:
  using Time = Broker::Time;

  Operators(std::size_t count, Broker& broker, DeadLetters& letters, Time now);

  bool is_none() const { return processes_.empty(); }

  /// Starts those that are missing. `options.number`: the number of the last process; it is counted up.
  void start_missing(WorkerOptions& options, const std::string& url);

  void add_waits(std::vector<pollfd>& waits) const;

  /// Answers what they have asked.
  void answer();

  /// Kills one, now or when it has published dead letters and not acknowledged them.
  void kill_one(Dice& dice);

  /// No operator is killed any more when it has published.
  void end_kills() { kills_next_publisher_ = false; }

  /// Whether there are so few dead letters that keys may be sent.
  bool has_room() const;

  /// Repairs the handler, if it is due, for the keys that were sent until now. If the number of keys is given, it waits
  /// until each of them was consumed or became a dead letter. So the seed decides which messages fail.
  void repair(Time now, bool is_storming, const std::optional<std::uint64_t>& keys);

  /// The handler is repaired for the keys before this one.
  std::uint64_t repaired_below() const { return repaired_below_; }

  void close_input();

  /// Whether all have ended. `answer` must be called before.
  bool have_ended() const;

  /// Kills those that still run.
  void remove() { processes_.clear(); }

  unsigned repairs() const { return repairs_; }
  std::uint64_t killed() const { return killed_; }
  const std::string& fatal() const { return fatal_; }

  /// Imbalances of the operators themselves.
  const std::vector<Imbalance>& wrong() const { return wrong_; }

 private:
  void answer(WorkerProcess& each);
  QuestionAnswer answer_to(const Question& question, unsigned holder);
  void remove_ended(WorkerProcess& each);

  Broker& broker_;
  DeadLetters& letters_;
  std::vector<std::unique_ptr<WorkerProcess>> processes_;
  bool kills_next_publisher_ = false;
  bool is_ending_ = false;
  Time next_repair_;
  std::uint64_t repaired_below_ = 0;
  unsigned repairs_ = 0;
  std::uint64_t killed_ = 0;
  std::string fatal_;
  std::vector<Imbalance> wrong_;
};

}  // namespace txinbox::torture
