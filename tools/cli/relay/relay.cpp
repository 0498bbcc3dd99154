#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/result.hpp>

#include "base/text.hpp"
#include "cli/brokers/brokers.hpp"
#include "cli/help_text.hpp"
#include "cli/relay/program_publisher.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/duration.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/stop_signals.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

struct RelayCommandOptions {
  DatabaseOption database;
  std::string program;
  std::string broker;
  std::string timeout = "10s";
  std::string lease = "30s";
  std::size_t batch = 500;
  int max_attempts = 0;
  bool until_empty = false, verbose = false, json = false;
};

/// Counts the events of the relay, and prints what goes wrong.
class Watch {
 public:
  explicit Watch(bool verbose) : verbose_(verbose) {}

  void operator()(const RelayEvent& event) {
    switch (event.type) {
      case RelayEventType::published:
        published_ += event.messages;
        break;
      case RelayEventType::failed:
        ++failed_;
        message(fmt::format("{}: {}; tried again", event.id, detail::one_line(event.text)));
        break;
      case RelayEventType::parked:
        ++parked_;
        message(fmt::format("{}: {}; parked", event.id, detail::one_line(event.text)));
        break;
      case RelayEventType::error:
        message("txinbox: " + detail::one_line(describe_error(event.error, verbose_)) + "; tried again");
        break;
      case RelayEventType::parts:
        message(fmt::format("txinbox: publishes {} of the 64 parts", event.parts));
        break;
    }
  }

  std::string summary(bool json) const {
    if (json) {
      return Json{
          {"summary", true}, {"published", published_.load()}, {"failed", failed_.load()}, {"parked", parked_.load()}}
          .text();
    }
    return fmt::format("published {}, failed attempts {}, parked {}", published_.load(), failed_.load(),
                       parked_.load());
  }

  std::size_t parked() const { return parked_; }

 private:
  const bool verbose_;
  std::atomic<std::size_t> published_ = 0, failed_ = 0, parked_ = 0;
};

/// False also if the database is not available: the relay tries again.
bool is_empty(Pool& pool) {
  try {
    const auto connection = pool.acquire();
    const auto has = [&](OutboxState state) { return !list_outbox(connection, {.state = state, .limit = 1}).empty(); };
    return !has(OutboxState::waiting) && !has(OutboxState::failing);
  } catch (...) {
    if (!is_transient(std::current_exception())) throw;
    return false;
  }
}

std::string check_time(const std::string& text) {
  const auto time = parse_duration(text);
  if (time && time->count() > 0) return {};
  return fmt::format("'{}' is not a time with its unit, such as 500ms, 10s or 1m", text);
}

/// poll takes milliseconds as an int.
std::string check_timeout(const std::string& text) {
  if (auto problem = check_time(text); !problem.empty()) return problem;
  return *parse_duration(text) <= std::chrono::days(24) ? "" : "the longest time is 24d";
}

Publisher publisher_of(const RelayCommandOptions& options, std::chrono::milliseconds timeout) {
  if (options.program.empty() == options.broker.empty()) {
    throw UsageError("relay: say where to publish, with either --exec PROGRAM or --to URL");
  }
  if (!options.broker.empty()) return open_publisher(options.broker, timeout);
  const auto program = std::make_shared<ProgramPublisher>(
      options.program, timeout, [](const std::string& text) { message("txinbox: " + text + "; tried again"); });
  return [program](std::span<const OutgoingMessage> messages) { return (*program)(messages); };
}

int run_relay(const RelayCommandOptions& options) {
  const auto timeout = *parse_duration(options.timeout);
  if (*parse_duration(options.lease) <= 2 * timeout) {
    throw UsageError(fmt::format(
        "relay: --lease {} is not more than twice --timeout {}: a relay would lose its lease during a slow call",
        options.lease, options.timeout));
  }
  StopSignals signals;
  const Publisher publisher = publisher_of(options, timeout);
  auto pool = open_database(options.database, false, 2);
  outbox_status(pool.acquire());  // so that a defect of the database ends the command
  Watch watch(options.verbose);
  bool emptied = false;
  std::exception_ptr error;
  try {
    const OutboxRelay relay(pool, publisher,
                            {.batch = options.batch,
                             .lease = *parse_duration(options.lease),
                             .max_attempts = options.max_attempts,
                             .listeners = {on_event([&watch](const RelayEvent& event) { watch(event); })}});
    while (!signals.stopped() && !emptied) {
      pollfd signal{signals.wake_fd(), POLLIN, 0};
      ::poll(&signal, 1, options.until_empty ? 200 : -1);
      emptied = options.until_empty && is_empty(pool);
    }
  } catch (...) {
    error = std::current_exception();
  }
  Output output;
  output.line(watch.summary(options.json));
  if (error) std::rethrow_exception(error);
  if (output.failed() || !emptied) return exit_stopped;
  return watch.parked() == 0 ? exit_ok : exit_found;
}

}  // namespace

void add_relay(Command app, Run& run) {
  auto options = std::make_shared<RelayCommandOptions>();
  auto command = app.subcommand("relay", "Publish the messages of the outbox");
  options->database.add_to(command);
  command
      .option("--exec", options->program,
              "The program that publishes: it reads a message as JSON from each line, and answers "
              "{\"id\":\"…\",\"published\":true} when the message is published")
      .type("PROGRAM");
  command
      .option("--to", options->broker,
              "Where to publish: kafka://HOST:PORT, amqp://USER@HOST/VHOST, rocketmq://HOST:PORT, or a webhook, "
              "https://HOST/PATH")
      .type("URL");
  command.option("--timeout", options->timeout, "How long the program or the broker may take for a batch")
      .type("TIME")
      .with_default()
      .checked(check_timeout);
  command
      .option("--lease", options->lease,
              "After this time without a renewal, other relays take over; from 100ms; more than twice --timeout")
      .type("TIME")
      .with_default()
      .checked(check_time);
  command.option("--batch", options->batch, "How many messages are read and removed at a time, from 1 to 10000")
      .type("N")
      .with_default()
      .range(1, 10'000);
  command.option("--max-attempts", options->max_attempts, "Park a message after this many failures; 0: never")
      .type("N")
      .with_default()
      .range(0, 1'000'000);
  command.flag("--until-empty", options->until_empty, "End when every message is published or parked");
  command.flag("--verbose", options->verbose, "Print the whole text of errors; it can contain values");
  command.flag("--json", options->json, "Print the summary as JSON");
  command.add_help({"txinbox relay --to kafka://broker:9092", "txinbox relay --exec ./publish.py --until-empty"},
                   {{exit_ok, "with --until-empty: every message was published"},
                    {exit_found, "with --until-empty: a message was parked"},
                    usage_status,
                    database_status,
                    {exit_stopped, "a signal ended it, or nobody reads standard output any more"}});
  command.on_chosen(run, [options] { return run_relay(*options); });
}

}  // namespace txinbox::cli
