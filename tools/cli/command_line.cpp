#include "cli/command_line.hpp"

#include <string>

#include <CLI/CLI.hpp>
#include <txinbox/version.hpp>

namespace txinbox::cli {

void add_all(CLI::App& app, Run& run) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("txinbox ") + version(), "Print the version and exit");
  add_migrate(app, run);
  add_doctor(app, run);
  add_consume(app, run);
  add_status(app, run);
  add_leases(app, run);
  add_show(app, run);
  add_forget(app, run);
  add_purge(app, run);
  add_failed(app, run);
}

}  // namespace txinbox::cli
