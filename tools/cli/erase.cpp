#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <txinbox/error.hpp>
#include <txinbox/operations.hpp>

#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/operator_options.hpp"
#include "cli/row_options.hpp"
#include "cli/subcommands.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/stop_signals.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

struct EraseCommand {
  RowOptions rows;
  OperatorOptions by;
  bool no_consumer_runs = false;
};

std::string_view explanation(EraseOutcome outcome) {
  switch (outcome) {
    case EraseOutcome::not_found:
      return "nothing is recorded for it";
    case EraseOutcome::running:
      return "a delivery of it runs, or its process crashed; try again, after a crash with --no-consumer-runs";
    case EraseOutcome::torn:
      return "it is torn: repair the data, then txinbox failed discard it";
    case EraseOutcome::erased:
      break;
  }
  return {};
}

/// The messages name the line of the file and not the key: what is erased must not be in a log. All keys of the file
/// are erased together, so an error has no line.
void say_unchanged(const EraseCommand& command, const FileKey& key, EraseOutcome outcome) {
  message(command.rows.has_file() ? fmt::format("txinbox: line {}: {}", key.line, explanation(outcome))
                                  : fmt::format("txinbox: the message: {}", explanation(outcome)));
}

int run_erase(const EraseCommand& command) {
  const auto keys = command.rows.keys("erase");
  std::vector<std::string> texts;
  texts.reserve(keys.size());
  for (const FileKey& each : keys) texts.push_back(each.key);
  StopSignals signals;
  auto pool = open_database(command.rows.database);
  auto connection = pool.acquire();
  std::vector<EraseOutcome> outcomes;
  if (!command.no_consumer_runs) message("txinbox: this takes 30 s, until all consumers know the erased keys");
  try {
    outcomes = erase(connection.session(), command.rows.consumer, texts, command.by.action(),
                     {.no_consumer_runs = command.no_consumer_runs, .stop = signals.token()});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::stopped) throw;
    message("txinbox: stopped: the keys are not removed yet; run it again with the same keys");
    return exit_stopped;
  }
  Output output;
  std::size_t erased = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] == EraseOutcome::erased) ++erased;
    if (command.rows.json) {
      Json json;
      if (command.rows.has_file()) json.set("line", keys[i].line);
      json.set("outcome", to_string(outcomes[i]));
      output.line(json.text());
    }
    if (outcomes[i] != EraseOutcome::erased) say_unchanged(command, keys[i], outcomes[i]);
  }
  if (!command.rows.json && erased > 0) {
    output.line(command.rows.has_file() ? fmt::format("erased {} of {} messages", erased, keys.size()) : "erased");
  }
  if (erased == 0) say_if_unknown(connection.session(), command.rows.consumer);
  if (output.failed()) return exit_stopped;
  return erased == keys.size() ? exit_ok : exit_found;
}

}  // namespace

void add_erase(Command app, Run& run) {
  auto options = std::make_shared<EraseCommand>();
  auto command = app.subcommand("erase", "Erase the personal data of messages; they still do not run again");
  options->rows.add_to(command);
  command.flag("--no-consumer-runs", options->no_consumer_runs,
               "No process consumes with this consumer now: do not wait for 30 s");
  options->by.add_to(command);
  command.add_help({"txinbox erase --consumer order-service --reason 'request 17' o22",
                    "txinbox erase --consumer order-service --keys-from keys.txt"},
                   {{exit_ok, "all messages are erased"},
                    {exit_found, "some are not: they are not known, running or torn"},
                    usage_status,
                    database_status,
                    {exit_stopped, "a signal ended it, or nobody reads standard output any more: run it again"}});
  command.on_chosen(run, [options] { return run_erase(*options); });
}

}  // namespace txinbox::cli
