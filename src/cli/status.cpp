#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/result.hpp>

#include "database_option.hpp"
#include "describe_error.hpp"
#include "exit_status.hpp"
#include "open_database.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "stop_signals.hpp"
#include "subcommands.hpp"
#include "table.hpp"

namespace txinbox::cli {
namespace {

constexpr std::chrono::milliseconds redraw_every{2'000};

struct StatusOptions {
  DatabaseOption database;
  bool watch = false;
  bool json = false;
};

std::string as_json(const Status& status) {
  auto consumers = nlohmann::ordered_json::array();
  for (const auto& c : status.consumers) {
    consumers.push_back({{"consumer", c.consumer},
                         {"consumed", c.consumed},
                         {"consuming", c.consuming},
                         {"parked", c.parked},
                         {"oldest", c.oldest},
                         {"newest", c.newest}});
  }
  const nlohmann::ordered_json json = {{"database", status.database},
                                       {"server_version", status.server_version},
                                       {"schema_version", status.schema_version},
                                       {"rows", status.rows},
                                       {"bytes", status.bytes},
                                       {"consumers", consumers}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string as_text(const Status& status) {
  auto number = [](std::int64_t n) { return grouped(static_cast<unsigned long long>(n)); };
  std::string text = fmt::format("{} {}, schema version {}, {} rows", status.database, status.server_version,
                                 status.schema_version, number(status.rows));
  if (status.bytes > 0) text += fmt::format(", {} bytes", number(status.bytes));
  std::vector<std::vector<std::string>> rows{
      {"CONSUMER", "CONSUMED", "CONSUMING", "PARKED", "OLDEST (UTC)", "NEWEST (UTC)"}};
  for (const auto& c : status.consumers) {
    rows.push_back({c.consumer, number(c.consumed), number(c.consuming), number(c.parked), c.oldest, c.newest});
  }
  if (!status.consumers.empty()) text += "\n\n" + format_table(rows, {false, true, true, true});
  return text;
}

Status read_status(Pool& pool) {
  auto connection = pool.acquire();
  return status(connection.session());
}

int watch(Pool& pool, const StatusOptions& options, const StopSignals& signals) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && !options.json;
  Output output;
  while (!signals.stopped()) {
    std::optional<Status> status;
    try {
      status = read_status(pool);
    } catch (...) {
      const auto error = std::current_exception();
      if (!is_transient(error)) throw;
      message("txinbox: " + describe_error(error));
    }
    if (status) {
      const std::string clear_screen = terminal ? "\x1b[H\x1b[2J" : "";
      const std::string gap = terminal || options.json ? "" : "\n";
      if (!output.line(clear_screen + (options.json ? as_json(*status) : as_text(*status)) + gap)) return exit_stopped;
    }
    pollfd wait{signals.wake_fd(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(redraw_every.count()));
  }
  return exit_ok;
}

int run_status(const StatusOptions& options) {
  std::optional<StopSignals> signals;
  if (options.watch) signals.emplace();
  auto pool = open_database(options.database);
  if (signals) return watch(pool, options, *signals);
  const Status status = read_status(pool);
  Output output;
  output.line(options.json ? as_json(status) : as_text(status));
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_status(CLI::App& app, Run& run) {
  auto options = std::make_shared<StatusOptions>();
  auto* command = app.add_subcommand("status", "Count what is recorded for each consumer");
  options->database.add_to(*command);
  command->add_flag("--watch", options->watch, "Again every two seconds, until a signal");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &run] { run = [options] { return run_status(*options); }; });
}

}  // namespace txinbox::cli
