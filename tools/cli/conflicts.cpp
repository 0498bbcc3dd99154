#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"

namespace txinbox::cli {
namespace {

struct ConflictsOptions {
  DatabaseOption database;
  ConflictFilter filter{.limit = 100};
  bool json = false;
};

std::string as_json(const std::vector<ConflictingContent>& conflicts) {
  auto list = Json::array();
  for (const auto& each : conflicts) {
    list.append({{"consumer", each.consumer},
                 {"business_key", each.business_key},
                 {"message_id", each.message_id},
                 {"original_message_id", each.original_message_id},
                 {"content_hash", each.content_hash},
                 {"original_hash", each.original_hash},
                 {"state", each.state},
                 {"deliveries", each.deliveries},
                 {"first_at", time_text(each.first_at)},
                 {"last_at", time_text(each.last_at)},
                 {"age_seconds", each.age.count()}});
  }
  return list.text();
}

/// The first digits of a hash: enough to see which contents are the same.
std::string short_hash(const std::string& hash) {
  constexpr std::size_t digits = 8;
  return hash.substr(0, digits);
}

std::string as_table(const std::vector<ConflictingContent>& conflicts) {
  if (conflicts.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{{"CONSUMER", "BUSINESS KEY", "MESSAGE ID", "CONTENT", "DELIVERIES",
                                              "LAST (UTC)", "AGE", "STATE", "ORIGINAL ID", "ORIGINAL"}};
  for (const auto& each : conflicts) {
    rows.push_back({each.consumer, each.business_key, each.message_id, short_hash(each.content_hash),
                    std::to_string(each.deliveries), time_to_the_second(each.last_at), human_age(each.age), each.state,
                    each.original_message_id, short_hash(each.original_hash)});
  }
  return format_table(rows, {false, false, false, false, true, true, true}, {.columns = terminal_size().columns});
}

int run_conflicts(const ConflictsOptions& options) {
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  ConflictFilter filter = options.filter;
  ++filter.limit;  // to find out whether there are more
  auto conflicts = list_conflicts(connection.session(), filter);
  const bool more = conflicts.size() > options.filter.limit;
  if (more) conflicts.pop_back();

  Output output;
  output.line(options.json ? as_json(conflicts) : as_table(conflicts));
  if (conflicts.empty()) say_if_unknown(connection.session(), options.filter.consumer);
  if (more) message(fmt::format("txinbox: there are more than {}; --limit shows more", options.filter.limit));
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_conflicts(Command app, Run& run) {
  auto options = std::make_shared<ConflictsOptions>();
  auto command = app.subcommand("conflicts", "List the messages that had a known key and other content");
  options->database.add_to(command);
  command.option("--consumer", options->filter.consumer, "Only of this consumer").type("NAME");
  command.option("--limit", options->filter.limit, "The most rows to list, from 1 to 100000")
      .type("N")
      .with_default()
      .range(1, 100'000);
  command.flag("--json", options->json, "Print JSON");
  command.option("key", options->filter.business_key, "Only of this business key").shown_as("[BUSINESS_KEY]");
  command.add_help({"txinbox conflicts --consumer payments", "txinbox conflicts --consumer payments -- order-7"},
                   {{exit_ok, "success, even if the list is empty"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_conflicts(*options); });
}

}  // namespace txinbox::cli
