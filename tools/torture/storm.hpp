#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "console/progress.hpp"
#include "console/stop_signals.hpp"
#include "torture/broker.hpp"
#include "torture/dead_letters.hpp"
#include "torture/dice.hpp"
#include "torture/imbalance.hpp"
#include "torture/operators.hpp"
#include "torture/plan.hpp"
#include "torture/user_command.hpp"
#include "torture/worker_process.hpp"

namespace txinbox::torture {

struct StormOptions {
  unsigned processes = 4;
  unsigned threads = 2;  ///< In each process.
  std::chrono::milliseconds duration{60'000};
  std::chrono::milliseconds kill_every{500};  ///< On average. 0: never.
  std::chrono::milliseconds grace{60'000};
  std::optional<std::uint64_t> keys = {};
  std::uint64_t rate = 0;  ///< Keys per second. 0: as fast as they are acknowledged.
  std::uint64_t seed = 0;
  unsigned shards = 1;  ///< As for `Plan`.
  std::string command;
  std::chrono::milliseconds command_every{10'000};
  unsigned command_at_least = 0;  ///< The storm continues until the command ran this often, for at most `grace` longer.
  std::string subject = "tx";
  unsigned relays = 3;                    ///< Processes that publish the messages of the outbox, if there is a sink.
  std::string sink = {};                  ///< The file to which they publish. Empty: there are no relays.
  std::vector<std::string> relay_urls;    ///< The databases from which they publish, in turn.
  unsigned operators = 0;                 ///< Processes that run `redrive`.
  std::function<bool()> is_drained = {};  ///< Whether the outbox is empty, and with operators no message is parked.
};

/// The figures of the storm, besides the counts of the broker.
struct StormFigures {
  Counters met;
  std::uint64_t workers_killed = 0;
  std::uint64_t relays_killed = 0;
  std::uint64_t operators_killed = 0;
  unsigned repairs = 0;  ///< How often the handler was repaired, with operators.
  unsigned commands_run = 0;
  unsigned commands_failed = 0;
  std::chrono::duration<double> elapsed{};
  std::chrono::duration<double> longest_outage{};  ///< The longest time without an acknowledgement.
};

/// Runs worker processes, passes the broker's deliveries to them, and kills some of them.
class Storm {
 public:
  Storm(const StormOptions& options, const std::string& url, const std::string& name, cli::StopSignals& signals);

  enum class End {
    done,     ///< Everything that was sent is acknowledged.
    stopped,  ///< A signal came.
    gave_up,  ///< Nothing was acknowledged during the grace period, or the workers crash.
    fatal,    ///< A worker cannot go on: `fatal()` says why.
  };

  End run();

  const Broker& broker() const { return broker_; }
  const DeadLetters& dead_letters() const { return dead_letters_; }
  const StormFigures& figures() const { return figures_; }
  const std::string& fatal() const { return fatal_; }

  /// Imbalances of the processes themselves.
  std::vector<Imbalance> wrong() const;

 private:
  using Time = Broker::Time;

  void step(Time now);
  bool is_storming(Time now) const;
  using Processes = std::vector<std::unique_ptr<WorkerProcess>>;
  WorkerOptions worker_options() const;
  void start_missing(Processes& processes, const std::string& sink);
  void start_missing_operators();
  void send(Time now);
  bool has_drained(Time now);
  void receive_replies(WorkerProcess& worker, Time now);
  void take_reply(const WorkerProcess::ReceivedReply& received, Time now);
  void remove_ended_worker(WorkerProcess& worker);
  void kill_worker(Time now);
  void hand_out(Time now);
  Assignment next_assignment(Time now);
  void wait() const;
  void end_workers();
  void await_command();
  void draw(Time now);

  StormOptions options_;
  std::string url_;
  std::string name_;
  cli::StopSignals& signals_;
  cli::Progress progress_;
  Plan plan_;
  DeadLetters dead_letters_;
  Broker broker_;
  Dice dice_;
  Time start_;
  Time last_acknowledged_;
  Time next_kill_;
  UserCommand command_;
  Processes workers_;
  Processes relays_;
  Operators operators_;
  std::optional<Time> drains_since_ = {};
  unsigned last_worker_ = 0;
  std::uint64_t last_assignment_ = 0;
  Death next_death_ = Death::never;
  bool is_ending_ = false;
  StormFigures figures_;
  std::string fatal_;
  std::vector<Imbalance> wrong_;
  std::set<std::string> reported_;  // unexpected failures, without repetition
};

}  // namespace txinbox::torture
