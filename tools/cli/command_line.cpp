#include "cli/command_line.hpp"

#include <string>

#include <txinbox/version.hpp>

namespace txinbox::cli {

void add_all(Command app, Run& run) {
  app.requires_subcommand();
  app.version(std::string("txinbox ") + txinbox::version());
  add_migrate(app, run);
  add_doctor(app, run);
  add_consume(app, run);
  add_status(app, run);
  add_leases(app, run);
  add_show(app, run);
  add_forget(app, run);
  add_purge(app, run);
  add_failed(app, run);
  add_outbox(app, run);
  add_relay(app, run);
}

}  // namespace txinbox::cli
