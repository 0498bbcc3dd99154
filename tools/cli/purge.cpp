#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <soci/error.h>
#include <txinbox/retention.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/operator_options.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/stop_signals.hpp"

namespace txinbox::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t largest_batch = 10'000;

struct PurgeCommand {
  DatabaseOption database;
  std::string older_than;
  std::string max_time;
  PurgeOptions options;
  OperatorOptions by;
  bool failed = false;
  bool conflicts = false;
  bool dry_run = false;
  bool json = false;
};

/// The rows of a purge, and their name in the output.
struct Rows {
  const char* name;
  Purgeable what;
};

std::vector<Rows> rows_of(const PurgeCommand& command) {
  std::vector<Rows> rows;
  if (command.failed) rows.push_back({"failed", Purgeable::failed});
  if (command.conflicts) rows.push_back({"conflicts", Purgeable::conflicts});
  if (rows.empty()) rows.push_back({"consumed", Purgeable::consumed});
  return rows;
}

using Counts = std::vector<std::pair<const char*, std::size_t>>;

Json as_json(const Counts& counts, double elapsed, bool stopped) {
  Json json;
  for (const auto& [name, rows] : counts) json.set(name, rows);
  json.set("seconds", elapsed);
  json.set("stopped", stopped);
  return json;
}

std::string listed(const Counts& counts) {
  std::string text;
  for (const auto& [name, rows] : counts) {
    text += fmt::format("{} {} {}", &name == &counts.front().first ? "" : ",", name, grouped(rows));
  }
  return text;
}

bool is_nothing(const Counts& counts) {
  return std::ranges::all_of(counts, [](const auto& each) { return each.second == 0; });
}

std::chrono::seconds age_of(const PurgeCommand& command) {
  return std::chrono::floor<seconds>(duration_of("--older-than", command.older_than));
}

Counts count_each(soci::session& session, const PurgeCommand& command, seconds older_than) {
  Counts counts;
  PurgeOptions options = command.options;
  options.dry_run = true;
  for (const Rows& rows : rows_of(command)) {
    options.what = rows.what;
    counts.emplace_back(rows.name, txinbox::purge(session, older_than, options));
  }
  return counts;
}

/// The number of rows, for the progress. 0 if counting them takes longer than a statement may take.
std::size_t count_all(Pool& pool, const PurgeCommand& command, seconds older_than) {
  try {
    auto connection = pool.acquire();
    std::size_t all = 0;
    for (const auto& [name, rows] : count_each(connection.session(), command, older_than)) all += rows;
    return all;
  } catch (const soci::soci_error&) {
    return 0;
  }
}

int run_dry(const PurgeCommand& command) {
  const auto older_than = age_of(command);
  Pool pool = open_for_reading(command.database);
  auto connection = pool.acquire();
  const auto start = std::chrono::steady_clock::now();
  const Counts counts = count_each(connection.session(), command, older_than);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  Output output;
  if (command.json) {
    auto json = as_json(counts, elapsed.count(), false);
    json.set("dry_run", true);
    output.line(json.text());
  } else {
    output.line("would purge" + listed(counts));
  }
  if (is_nothing(counts)) say_if_unknown(connection.session(), command.options.consumer);
  return output.failed() ? exit_stopped : exit_ok;
}

int run_purge(const PurgeCommand& command) {
  if (command.dry_run) return run_dry(command);
  const auto older_than = age_of(command);
  milliseconds left{0};
  if (!command.max_time.empty()) left = duration_of("--max-time", command.max_time, milliseconds(1));
  const auto give_up = std::chrono::steady_clock::now() + left;

  StopSignals signals;
  Pool pool = open_database(command.database);
  const std::size_t size = Progress::is_seen() ? count_all(pool, command, older_than) : 0;
  auto connection = pool.acquire(signals.token());
  Progress progress;
  std::size_t all = 0;
  PurgeOptions options = command.options;
  options.by = command.by.action();
  options.stop = signals.token();
  options.listeners = {on_event([&](const Event& event) {
    all += event.rows;
    progress.draw(
        fmt::format("{} {}, {} a second{}", grouped(all), all == 1 ? "row" : "rows",
                    grouped(static_cast<unsigned long long>(static_cast<double>(all) / progress.elapsed().count())),
                    share_and_time_left({.done = all, .all = size}, progress.elapsed())));
  })};

  Counts counts;
  try {
    for (const Rows& rows : rows_of(command)) {
      options.what = rows.what;
      if (left > left.zero()) {
        const auto rest = std::chrono::ceil<milliseconds>(give_up - std::chrono::steady_clock::now());
        options.max_time = std::max(rest, milliseconds(1));
      }
      counts.emplace_back(rows.name, txinbox::purge(connection.session(), older_than, options));
    }
  } catch (...) {
    progress.erase();
    if (all > 0) message(fmt::format("txinbox: purged {} rows before the error", grouped(all)));
    throw;
  }
  progress.erase();

  const bool stopped = signals.stopped();
  Output output;
  output.line(command.json ? as_json(counts, progress.elapsed().count(), stopped).text()
                           : "purged" + listed(counts) + (stopped ? ", stopped by a signal" : ""));
  if (is_nothing(counts) && !stopped) say_if_unknown(connection.session(), command.options.consumer);
  return stopped || output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_purge(Command app, Run& run) {
  auto command = std::make_shared<PurgeCommand>();
  auto purge = app.subcommand("purge", "Remove old rows: if one of these messages comes again, it runs again");
  command->database.add_to(purge);
  purge
      .option("--older-than", command->older_than,
              "The age, greater than the longest time after which a message can come again (30m, 12h, 7d)")
      .required()
      .type("AGE");
  purge.option("--consumer", command->options.consumer, "Only this consumer's rows").type("NAME");
  purge.option("--batch-size", command->options.batch_size, "The most rows that one transaction removes")
      .type("N")
      .with_default()
      .range(1, largest_batch);
  purge.option("--max-rows", command->options.max_rows, "Stop after this many rows of a table").type("N").positive();
  purge.option("--max-time", command->max_time, "Begin no batch after this time (30s, 10m)").type("TIME");
  purge.flag("--failed", command->failed, "Remove failed messages that are not parked, instead of consumed ones");
  purge.flag("--conflicts", command->conflicts, "Remove conflicting messages, instead of consumed ones");
  purge.flag("--dry-run", command->dry_run, "Only print how many rows would be removed");
  command->by.add_to(purge);
  purge.flag("--json", command->json, "Print JSON");
  purge.add_help({"txinbox purge --older-than 30d --dry-run", "txinbox purge --older-than 30d --max-time 10m",
                  "txinbox purge --older-than 90d --failed --conflicts"},
                 {{exit_ok, "success, even if --max-rows or --max-time ended it"},
                  usage_status,
                  database_status,
                  {exit_stopped, "SIGINT or SIGTERM, or nobody reads standard output any more"}});
  purge.on_chosen(run, [command] { return run_purge(*command); });
}

}  // namespace txinbox::cli
