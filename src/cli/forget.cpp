#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <txinbox/retention.hpp>

#include "exit_status.hpp"
#include "open_database.hpp"
#include "output.hpp"
#include "row_options.hpp"
#include "subcommands.hpp"

namespace txinbox::cli {
namespace {

int run_forget(const RowOptions& options) {
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  const bool removed = forget(connection.session(), options.consumer, options.key);
  Output output;
  if (options.json) {
    output.line(nlohmann::ordered_json{{"forgotten", removed}}.dump());
  } else if (removed) {
    output.line("forgotten: the next delivery runs again");
  }
  if (!removed) return no_such_row();
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_forget(CLI::App& app, Run& run) {
  auto options = std::make_shared<RowOptions>();
  auto* command = app.add_subcommand("forget", "Remove the row of one business key: the next delivery runs again");
  options->add_to(*command);
  command->callback([options, &run] { run = [options] { return run_forget(*options); }; });
}

}  // namespace txinbox::cli
