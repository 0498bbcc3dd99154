#include "row_options.hpp"

#include <CLI/CLI.hpp>

#include "exit_status.hpp"
#include "output.hpp"

namespace txinbox::cli {

void RowOptions::add_to(CLI::App& command) {
  database.add_to(command);
  command.add_option("--consumer", consumer, "The consumer's name")->required()->type_name("NAME");
  command.add_option("key", key, "The business key; -- before one that begins with a dash")
      ->required()
      ->option_text("BUSINESS_KEY");
  command.add_flag("--json", json, "Print JSON");
}

int no_such_row() {
  message("txinbox: there is no row of this consumer and business key");
  return exit_found;
}

}  // namespace txinbox::cli
