#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <txinbox/retention.hpp>

#include "database_option.hpp"
#include "exit_status.hpp"
#include "open_database.hpp"
#include "output.hpp"
#include "subcommands.hpp"

namespace txinbox::cli {
namespace {

struct ForgetOptions {
  DatabaseOption database;
  std::string consumer;
  std::string key;
  bool json = false;
};

int run_forget(const ForgetOptions& options) {
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  const bool removed = forget(connection.session(), options.consumer, options.key);
  Output output;
  if (options.json) {
    output.line(nlohmann::ordered_json{{"forgotten", removed}}.dump());
  } else if (removed) {
    output.line("forgotten: the next delivery runs again");
  }
  if (!removed) message("txinbox: there is no row of this consumer and business key");
  if (!removed) return exit_found;
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_forget(CLI::App& app, Run& run) {
  auto options = std::make_shared<ForgetOptions>();
  auto* command = app.add_subcommand("forget", "Remove the row of one business key: the next delivery runs again");
  options->database.add_to(*command);
  command->add_option("--consumer", options->consumer, "The consumer's name")->required()->type_name("NAME");
  command->add_option("key", options->key, "The business key; -- before one that begins with a dash")
      ->required()
      ->option_text("BUSINESS_KEY");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options, &run] { run = [options] { return run_forget(*options); }; });
}

}  // namespace txinbox::cli
