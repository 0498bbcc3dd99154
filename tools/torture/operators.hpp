#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <poll.h>

#include "torture/broker.hpp"
#include "torture/dead_letters.hpp"
#include "torture/dice.hpp"
#include "torture/imbalance.hpp"
#include "torture/worker_process.hpp"

namespace txinbox::torture {

/// The operators of a storm: processes that run `redrive`. They ask, and the broker answers.
class Operators {
 public:
  Operators(std::size_t count, Broker& broker, DeadLetters& letters)
      : broker_(broker), letters_(letters), processes_(count) {}

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

  void close_input();

  /// Whether all have ended. `answer` must be called before.
  bool have_ended() const;

  /// Kills those that still run.
  void remove() { processes_.clear(); }

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
  std::uint64_t killed_ = 0;
  std::string fatal_;
  std::vector<Imbalance> wrong_;
};

}  // namespace txinbox::torture
