#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <txinbox/outbox_messages.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/operator_options.hpp"
#include "cli/row_json.hpp"
#include "cli/row_list.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

using std::chrono::floor;
using std::chrono::seconds;

struct OutboxOptions {
  DatabaseOption database;
  OperatorOptions by;
  std::string id, topic, key, state;
  std::size_t limit = 100;
  bool all = false, payload = false, json = false;

  void add_to(Command command) {
    database.add_to(command);
    command.option("--topic", topic, "Only of this topic").type("TOPIC");
    command.option("--key", key, "Only with this key").type("KEY");
    command.option("id", id, "The message with this id").shown_as("[ID]");
    command.flag("--json", json, "Print JSON");
  }

  /// Errors: `UsageError` if the options do not say which messages to change.
  void check_choice(std::string_view command) const {
    const bool one = !id.empty();
    if (one == all) {
      throw UsageError(fmt::format("outbox {}: say which messages, with either an ID or --all", command));
    }
  }

  OutboxFilter filter() const {
    OutboxFilter filter{.id = id, .topic = topic, .key = key, .limit = limit, .payloads = payload};
    for (const OutboxState each : {OutboxState::waiting, OutboxState::failing, OutboxState::parked}) {
      if (state == to_string(each)) filter.state = each;
    }
    return filter;
  }
};

int run_status(const OutboxOptions& options) {
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  const OutboxStatus status = outbox_status(connection.session());
  Output output;
  if (options.json) {
    output.line(row_json(status));
  } else {
    output.line(fmt::format("waiting {}, failing {}, parked {}{}", status.waiting, status.failing, status.parked,
                            status.oldest ? ", the oldest since " + human_age(floor<seconds>(status.oldest_age)) : ""));
    std::vector<std::vector<std::string>> rows{{"RELAY", "STARTED (UTC)", "PARTS", "LEASE"}};
    for (const auto& relay : status.relays) {
      rows.push_back({relay.name, time_to_the_second(relay.started_at), std::to_string(relay.parts),
                      relay.remaining.count() > 0 ? human_age(floor<seconds>(relay.remaining)) : "expired"});
    }
    if (rows.size() > 1)
      output.line(format_table(rows, {false, true, true, true}, {.columns = terminal_size().columns}));
    output.line(status.relays.empty() ? "no relay runs"
                                      : fmt::format("{} of 64 parts are without a relay", status.free_parts));
  }
  return output.failed() ? exit_stopped : exit_ok;
}

std::string as_table(const std::vector<OutboxMessageInfo>& messages) {
  if (messages.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{{"ID", "TOPIC", "KEY", "TYPE", "STATE", "AGE", "ATTEMPTS", "LAST ERROR"}};
  for (const auto& each : messages) {
    rows.push_back({each.id, each.topic, each.key, each.type, std::string(to_string(each.state)),
                    human_age(floor<seconds>(each.age)), std::to_string(each.attempts), each.last_error});
  }
  return format_table(rows, {true, false, false, false, false, true, true}, {.columns = terminal_size().columns});
}

int run_list(const OutboxOptions& options) {
  if (options.payload && !options.json) throw UsageError("outbox list: --payload needs --json");
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  auto messages = list_outbox(connection.session(), one_more(options.filter()));
  const bool more = cut_to(messages, options.limit);
  Output output;
  output.line(options.json ? row_json(messages) : as_table(messages));
  say_if_more(more, options.limit);
  if (output.failed()) return exit_stopped;
  return messages.empty() && !options.id.empty() ? exit_found : exit_ok;
}

using OutboxChange = std::size_t (*)(ConnectionRef, const OutboxFilter&, const std::optional<OperatorAction>&);

int run_change(const OutboxOptions& options, std::string_view command, std::string_view done, OutboxChange change) {
  options.check_choice(command);
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  OutboxFilter filter = options.filter();
  filter.limit = std::numeric_limits<std::size_t>::max();
  std::size_t changed = 0;
  try {
    changed = change(connection.session(), filter, options.by.action());
  } catch (...) {
    if (options.all) message("txinbox: what was changed before the error stays changed; run it again");
    throw;
  }
  Output output;
  output.line(options.json ? Json{{done, changed}}.text() : fmt::format("{} {} messages", done, changed));
  if (output.failed()) return exit_stopped;
  if (changed == 0) {
    message("txinbox: no message of this id, or of these filters, can be changed; see txinbox outbox list");
  }
  return changed > 0 ? exit_ok : exit_found;
}

void add_change(Command app, Run& run, const std::string& name, const std::string& done, const std::string& help,
                const std::vector<std::string>& states, OutboxChange change) {
  auto options = std::make_shared<OutboxOptions>();
  auto command = app.subcommand(name, help);
  options->add_to(command);
  options->by.add_to(command);
  command.flag("--all", options->all, "All messages that the filters choose, instead of one");
  if (!states.empty()) command.option("--state", options->state, "Only in this state").type("STATE").one_of(states);
  command.add_help({"txinbox outbox " + name + " --all --topic stock"}, {{exit_ok, "the chosen messages were changed"},
                                                                         {exit_found, "nothing was changed"},
                                                                         usage_status,
                                                                         database_status,
                                                                         output_status});
  command.on_chosen(run, [options, name, done, change] { return run_change(*options, name, done, change); });
}

}  // namespace

void add_outbox(Command app, Run& run) {
  auto outbox = app.subcommand("outbox", "Show the messages that wait, publish them again, or discard them");
  outbox.requires_subcommand();

  auto shown = std::make_shared<OutboxOptions>();
  auto status = outbox.subcommand("status", "Count the messages, and list the relays");
  shown->database.add_to(status);
  status.flag("--json", shown->json, "Print JSON");
  status.add_help({"txinbox outbox status --json"},
                  {{exit_ok, "success"}, usage_status, database_status, output_status});
  status.on_chosen(run, [shown] { return run_status(*shown); });

  auto listed = std::make_shared<OutboxOptions>();
  auto list = outbox.subcommand("list", "The messages, in the order in which they were added");
  listed->add_to(list);
  list.option("--state", listed->state, "Only in this state").type("STATE").one_of({"waiting", "failing", "parked"});
  list.option("--limit", listed->limit, "The most rows to list, from 1 to 100000")
      .type("N")
      .with_default()
      .range(1, 100'000);
  list.flag("--payload", listed->payload, "With --json: also print the payloads");
  list.add_help({"txinbox outbox list --state parked"}, {{exit_ok, "success, even if the list is empty"},
                                                         {exit_found, "there is no message with this id"},
                                                         usage_status,
                                                         database_status,
                                                         output_status});
  list.on_chosen(run, [listed] { return run_list(*listed); });

  add_change(outbox, run, "retry", "retried", "Let parked messages be published again", {}, retry_outbox);
  add_change(outbox, run, "discard", "discarded",
             "Remove messages permanently: parked and failing ones, unless a state is given",
             {"waiting", "failing", "parked"}, discard_outbox);
}

}  // namespace txinbox::cli
