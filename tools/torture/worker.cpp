#include "torture/worker.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <soci/soci.h>
#include <unistd.h>

#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/line_reader.hpp"
#include "console/output.hpp"
#include "torture/bad_deployment.hpp"
#include "torture/messages.hpp"
#include "torture/operator_worker.hpp"
#include "torture/redrive_messages.hpp"
#include "torture/relay_worker.hpp"
#include "torture/storm_pool.hpp"
#include "torture/subject.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t longest_line = 1'000'000;

// With redrive: so few that the handlers' usual failures park messages, too.
constexpr int failures_until_parked = 2;

class Worker {
 public:
  Worker(const WorkerOptions& options, const cli::DatabaseOption& database)
      : options_(options), database_(database), plan_(options.seed, options.shards), names_(options.number) {}

  int run() {
    std::vector<std::jthread> threads;
    threads.emplace_back([this] { work(); });
    read_input();
    stop_.request_stop();
    waiting_.notify_all();
    return cli::exit_ok;
  }

 private:
  void read_input() {
    cli::LineReader lines(STDIN_FILENO, -1, longest_line);
    std::string_view line;
    while (lines.next(line) == cli::LineReader::Status::line) {
      auto assignment = read_assignment(line);
      if (!assignment) return;
      const std::lock_guard lock(mutex_);
      assignments_.push_back(std::move(*assignment));
      waiting_.notify_one();
    }
  }

  std::optional<Assignment> take() {
    std::unique_lock lock(mutex_);
    if (!waiting_.wait(lock, stop_.get_token(), [this] { return !assignments_.empty(); })) return std::nullopt;
    Assignment assignment = std::move(assignments_.front());
    assignments_.pop_front();
    return assignment;
  }

  void say(const Reply& reply) {
    const std::lock_guard lock(mutex_);
    std::string line = to_line(reply);
    line.pop_back();
    output_.line(line);
  }

  /// Opens the database. It tries again until this succeeds. Then it starts the threads.
  void work() {
    try {
      auto pool = open();
      if (!pool) return;
      // Every second worker has a cache of recent keys, or a heartbeat. Every third worker never retries, so that the
      // broker sees its errors.
      const auto subject = make_subject(options_.subject, *pool,
                                        {.remembers = options_.number % 2 == 1,
                                         .has_heartbeat = options_.number % 2 == 1,
                                         .waits = options_.number % 4 < 2,
                                         .max_attempts = options_.number % 3 == 0 ? 1 : 6,
                                         .parks_after = has_redrive(options_.subject) ? failures_until_parked : 0,
                                         .stop = stop_.get_token()});
      hold_locks_for_ = worker_lock_timeout(database_.database()) + 200ms;
      say({});
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < options_.threads; ++i) {
        threads.emplace_back([&] {
          while (auto assignment = take()) carry_out(*assignment, *subject);
        });
      }
    } catch (...) {
      say({.fatal = cli::describe_setup_error(std::current_exception())});
    }
  }

  std::optional<Pool> open() {
    while (!stop_.stop_requested()) {
      try {
        // A heartbeat needs a connection while its handler has another one.
        const std::size_t for_each = is_leased(options_.subject) ? 2 : 1;
        return open_worker_pool(database_, options_.name, for_each * options_.threads);
      } catch (const soci::soci_error&) {
        std::this_thread::sleep_for(50ms);  // the parent could connect; it decides when to give up
      }
    }
    return std::nullopt;
  }

  void carry_out(const Assignment& assignment, Subject& subject) {
    std::vector<Message> messages;
    for (const Arrival& arrival : assignment.arrivals) {
      messages.push_back(message_of(plan_.key(arrival.key), arrival));
      if (has_redrive(options_.subject) && keeps_payload(plan_.seed(), arrival.key)) {
        messages.back().payload = payload_of(arrival);
      }
    }
    Reply reply{.number = assignment.number};
    TransferHandler handler(plan_, assignment, names_, hold_locks_for_, reply.met, has_outbox(options_.subject),
                            has_redrive(options_.subject));
    reply.answers = subject.consume(messages, assignment, handler, reply.met);
    if (assignment.death != Death::never) die();
    say(reply);
  }

  const WorkerOptions& options_;
  const cli::DatabaseOption& database_;
  Plan plan_;
  RunNames names_;
  std::chrono::milliseconds hold_locks_for_{};
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any waiting_;
  std::deque<Assignment> assignments_;
  cli::Output output_;
};

}  // namespace

int run_worker(const WorkerOptions& options, const cli::DatabaseOption& database) {
  if (options.is_operator) return run_operator(options, database);
  if (!options.sink.empty()) return run_relay(options, database);
  return Worker(options, database).run();
}

}  // namespace txinbox::torture
