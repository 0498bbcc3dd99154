#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <txinbox/operations.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/operator_options.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/duration.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

using std::chrono::seconds;

/// The options of both subcommands.
struct PauseOptions {
  DatabaseOption database;
  std::string consumer;
  std::string duration;
  OperatorOptions by;
  bool json = false;

  void add_to(Command command) {
    database.add_to(command);
    command.option("--consumer", consumer, "The consumer's name").required().type("NAME");
    command.flag("--json", json, "Print JSON");
  }
};

std::optional<seconds> pause_of(const PauseOptions& options) {
  if (options.duration.empty()) return std::nullopt;
  return std::chrono::floor<seconds>(duration_of("--for", options.duration));
}

int run_pause(const PauseOptions& options) {
  if (options.by.reason.empty()) throw UsageError("pause: --reason must not be empty");
  const auto duration = pause_of(options);
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  pause_consumer(connection.session(), options.consumer, options.by.action(), duration);
  Output output;
  if (options.json) {
    Json json{{"paused", true}, {"for_s", nullptr}};
    if (duration) json.set("for_s", duration->count());
    output.line(json.text());
  } else {
    output.line(fmt::format("paused {} {}", printable(options.consumer),
                            duration ? "for " + format_duration(*duration) : "until txinbox resume"));
  }
  say_if_unknown(connection.session(), options.consumer);
  return output.failed() ? exit_stopped : exit_ok;
}

int run_resume(const PauseOptions& options) {
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  const bool resumed = resume_consumer(connection.session(), options.consumer, options.by.action());
  Output output;
  if (options.json) {
    output.line(Json{{"resumed", resumed}}.text());
  } else if (resumed) {
    output.line("resumed " + printable(options.consumer));
  }
  if (!resumed) {
    message(fmt::format("txinbox: the consumer '{}' is not paused", printable(options.consumer)));
    say_if_unknown(connection.session(), options.consumer);
  }
  if (output.failed()) return exit_stopped;
  return resumed ? exit_ok : exit_found;
}

}  // namespace

void add_pause(Command app, Run& run) {
  auto options = std::make_shared<PauseOptions>();
  auto command = app.subcommand("pause", "Record that a consumer is paused");
  options->add_to(command);
  command.option("--for", options->duration, "The pause ends after this time (10m, 12h); without it, with resume")
      .type("TIME");
  options->by.add_to(command).required();
  command.add_help({"txinbox pause --consumer order-service --for 1h --reason 'the warehouse is down'"},
                   {{exit_ok, "success"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_pause(*options); });
}

void add_resume(Command app, Run& run) {
  auto options = std::make_shared<PauseOptions>();
  auto command = app.subcommand("resume", "End the pause of a consumer");
  options->add_to(command);
  options->by.add_to(command);
  command.add_help({"txinbox resume --consumer order-service"}, {{exit_ok, "success"},
                                                                 {exit_found, "the consumer was not paused"},
                                                                 usage_status,
                                                                 database_status,
                                                                 output_status});
  command.on_chosen(run, [options] { return run_resume(*options); });
}

}  // namespace txinbox::cli
