#include <memory>
#include <optional>

#include <fmt/format.h>
#include <txinbox/retention.hpp>

#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/operator_options.hpp"
#include "cli/row_options.hpp"
#include "cli/subcommands.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"

namespace txinbox::cli {
namespace {

int run_forget(const RowOptions& options, const OperatorOptions& by) {
  const auto keys = options.keys("forget");
  const std::optional action(by.action());
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  Output output;
  std::size_t forgotten = 0;
  const auto sum_up = [&] {
    if (options.json || forgotten == 0) return;
    output.line(options.has_file() ? fmt::format("forgotten {} of {} keys: the next delivery of each runs again",
                                                 forgotten, keys.size())
                                   : "forgotten: the next delivery runs again");
  };
  try {
    for_each_key(keys, [&](const FileKey& each) {
      const bool removed = forget(connection.session(), options.consumer, each.key, action);
      forgotten += removed ? 1U : 0U;
      if (options.json) {
        Json json;
        if (options.has_file()) json.set("business_key", each.key);
        json.set("forgotten", removed);
        output.line(json.text());
      }
      if (!removed) options.say_no_row(each);
    });
  } catch (...) {
    sum_up();
    throw;
  }
  sum_up();
  if (forgotten == 0) say_if_unknown(connection.session(), options.consumer);
  if (output.failed()) return exit_stopped;
  return forgotten == keys.size() ? exit_ok : exit_found;
}

}  // namespace

void add_forget(Command app, Run& run) {
  auto options = std::make_shared<RowOptions>();
  auto by = std::make_shared<OperatorOptions>();
  auto command = app.subcommand("forget", "Remove the row of a business key: the next delivery runs again");
  options->add_to(command);
  by->add_to(command);
  command.add_help(
      {"txinbox forget --consumer order-service o22", "txinbox forget --consumer order-service --keys-from keys.txt"},
      {{exit_ok, "success"}, {exit_found, "a key had no row"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options, by] { return run_forget(*options, *by); });
}

}  // namespace txinbox::cli
