#include "torture/operator_worker.hpp"

#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include <soci/soci.h>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/redrive.hpp>

#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "torture/operator_link.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/scratch_tables.hpp"
#include "torture/storm_pool.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds pause = 20ms;

class Operator {
 public:
  Operator(const WorkerOptions& options, Pool& pool, OperatorLink& link)
      : options_(options), pool_(pool), link_(link) {}

  void run() {
    const OutboxRelay relay(
        pool_, [this](std::span<const OutgoingMessage> messages) { return publish_stored(link_, messages); },
        {.poll = 10ms,
         .idle_poll = 50ms,
         .sweep = 300ms,
         .lease = 500ms,
         .initial_backoff = 10ms,
         .max_backoff = 200ms});
    while (!link_.stop().stop_requested()) {
      try {
        redrive_letters();
        redrive_payloads();
      } catch (...) {
        if (!is_transient(std::current_exception())) throw;
      }
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  /// A call ends after some dead letters. So those that failed again come back soon, in another call.
  void redrive_letters() {
    DeadLetterSource source(link_);
    const bool is_broken = options_.subject == "early";
    const Republisher publish = [&](std::span<const Republication> messages) {
      return publish_again(link_, messages, is_broken);
    };
    (void)redrive(source, publish, pool_,
                  {.consumer = consumer_name,
                   .max = options_.number % 2 == 0 ? 3U : 100U,
                   .max_redrives = 1'000'000,
                   .idle_exit = 50ms,
                   .stop = link_.stop()});
  }

  void redrive_payloads() {
    const Connection connection = pool_.acquire();
    (void)redrive_stored(connection.session(), outbox_topic, {.consumer = consumer_name, .limit = 20});
  }

  const WorkerOptions& options_;
  Pool& pool_;
  OperatorLink& link_;
};

/// Opens the database. It tries again until this succeeds.
Pool open(const WorkerOptions& options, const cli::DatabaseOption& database) {
  while (true) {
    try {
      return open_worker_pool(database, options.name, 3);
    } catch (const soci::soci_error&) {
      std::this_thread::sleep_for(50ms);  // the parent could connect; it kills this process when it gives up
    }
  }
}

}  // namespace

int run_operator(const WorkerOptions& options, const cli::DatabaseOption& database) {
  OperatorLink link;
  try {
    Pool pool = open(options, database);
    Operator(options, pool, link).run();
  } catch (...) {
    link.say_fatal(cli::describe_setup_error(std::current_exception()));
  }
  return cli::exit_ok;
}

}  // namespace txinbox::torture
