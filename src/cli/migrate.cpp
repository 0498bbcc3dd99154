#include <memory>

#include <fmt/format.h>
#include <soci/soci.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <txinbox/schema.hpp>

#include "database_option.hpp"
#include "exit_status.hpp"
#include "open_database.hpp"
#include "output.hpp"
#include "subcommands.hpp"

namespace txinbox::cli {
namespace {

struct MigrateOptions {
  DatabaseOption database;
  bool print = false;
  bool json = false;
};

using Json = nlohmann::ordered_json;

int print_migrations(const MigrateOptions& options) {
  Json list = Json::array();
  std::string text;
  for (const auto& migration : migrations(database_name(options.database.database()))) {
    list.push_back({{"version", migration.version}, {"name", migration.name}, {"sql", migration.sql}});
    if (!text.empty()) text += '\n';
    text += migration.sql;
  }
  while (text.ends_with('\n')) text.pop_back();
  Output output;
  output.line(options.json ? list.dump() : text);
  return output.failed() ? exit_stopped : exit_ok;
}

// 0 when there is no table yet.
int version_of(soci::session& session) {
  int version = 0;
  try {
    session << "select coalesce(max(version), 0) from txinbox_schema", soci::into(version);
  } catch (const soci::soci_error&) {
    return 0;  // `migrate` says what is wrong, if anything is
  }
  return version;
}

int run_migrate(const MigrateOptions& options) {
  if (options.print) return print_migrations(options);
  auto pool = create_database(options.database);
  auto connection = pool.acquire();
  soci::session& session = connection.session();
  const int before = version_of(session);
  migrate(session);
  const int after = version_of(session);

  Output output;
  Json applied = Json::array();
  for (const auto& migration : migrations(session.get_backend_name())) {
    if (migration.version <= before || migration.version > after) continue;
    applied.push_back({{"version", migration.version}, {"name", migration.name}});
    if (!options.json) output.line(fmt::format("applied V{}__{}", migration.version, migration.name));
  }
  if (options.json) {
    output.line(Json{{"version", after}, {"applied", applied}}.dump());
  } else if (applied.empty()) {
    output.line(fmt::format("up to date at version {}", after));
  }
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_migrate(CLI::App& app, Run& run) {
  auto options = std::make_shared<MigrateOptions>();
  auto* command = app.add_subcommand("migrate", "Create the tables of the inbox, or bring them up to date");
  options->database.add_to(*command);
  command->add_flag("--print", options->print, "Print the SQL for this kind of database instead, without connecting");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &run] { run = [options] { return run_migrate(*options); }; });
}

}  // namespace txinbox::cli
