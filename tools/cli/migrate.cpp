#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <txinbox/schema.hpp>

#include "backend/database.hpp"
#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/wait_notice.hpp"

namespace txinbox::cli {
namespace {

struct MigrateOptions {
  DatabaseOption database;
  bool print = false;
  bool info = false;
  bool json = false;
};

int print_migrations(const MigrateOptions& options) {
  auto list = Json::array();
  std::string text;
  for (const auto& migration : migrations(std::string(options.database.database().name()))) {
    list.append({{"version", migration.version}, {"name", migration.name}, {"sql", migration.sql}});
    if (!text.empty()) text += '\n';
    text += migration.sql;
  }
  while (text.ends_with('\n')) text.pop_back();
  Output output;
  output.line(options.json ? list.text() : text);
  return output.failed() ? exit_stopped : exit_ok;
}

const char* state_of(const MigrationState& state) {
  if (!state.known) return "newer";
  return state.applied ? "applied" : "pending";
}

int print_info(const MigrateOptions& options) {
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  auto list = Json::array();
  std::vector<std::vector<std::string>> rows{{"VERSION", "NAME", "STATE", "APPLIED (UTC)"}};
  for (const auto& each : migration_states(connection.session())) {
    list.append({{"version", each.version},
                 {"name", each.name},
                 {"state", state_of(each)},
                 {"applied_at", time_text(each.applied_at)}});
    rows.push_back({fmt::format("V{}", each.version), each.name, state_of(each), time_to_the_second(each.applied_at)});
  }
  Output output;
  output.line(options.json ? list.text() : format_table(rows));
  return output.failed() ? exit_stopped : exit_ok;
}

int newest_applied(soci::session& session) {
  int newest = 0;
  for (const auto& each : migration_states(session)) newest = each.applied ? each.version : newest;
  return newest;
}

int run_migrate(const MigrateOptions& options) {
  if (options.print) return print_migrations(options);
  if (options.info) return print_info(options);
  WaitNotice notice;
  const WaitNotice::Call call(notice);
  auto pool = create_database(options.database);
  auto connection = pool.acquire();
  const auto applied = migrate(connection.session());
  const int version = newest_applied(connection.session());

  Output output;
  auto list = Json::array();
  for (const auto& migration : applied) {
    list.append({{"version", migration.version}, {"name", migration.name}});
    if (!options.json) output.line(fmt::format("applied V{}__{}", migration.version, migration.name));
  }
  if (options.json) {
    Json json{{"version", version}};
    json.set("applied", std::move(list));
    output.line(json.text());
  } else if (applied.empty()) {
    output.line(fmt::format("up to date at version {}", version));
  }
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_migrate(Command app, Run& run) {
  auto options = std::make_shared<MigrateOptions>();
  auto command = app.subcommand("migrate", "Create or update the tables of the inbox");
  options->database.add_to(command);
  auto print = command.flag("--print", options->print, "Print the SQL for this kind of database, and do not connect");
  command.flag("--info", options->info, "Print which versions are applied and which are pending, and change nothing")
      .excludes(print);
  command.flag("--json", options->json, "Print JSON");
  command.add_help(
      {"txinbox migrate --db sqlite:orders.db", "txinbox migrate --db postgresql://owner@db.example/orders --info"},
      {{exit_ok, "the tables are up to date"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_migrate(*options); });
}

}  // namespace txinbox::cli
