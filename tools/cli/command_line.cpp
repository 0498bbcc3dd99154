#include "cli/command_line.hpp"

#include <string>

#include <fmt/format.h>
#include <txinbox/version.hpp>

#include "cli/help_text.hpp"

namespace txinbox::cli {

void add_all(Command app, Run& run) {
  app.requires_subcommand();
  app.version(std::string("txinbox ") + txinbox::version());
  std::string environment = "Environment:";
  for (const auto& [name, meaning] : variables) environment += fmt::format("\n  {:<27} {}", name, meaning);
  app.footer(environment);
  add_migrate(app, run);
  add_doctor(app, run);
  add_serve(app, run);
  add_consume(app, run);
  add_status(app, run);
  add_leases(app, run);
  add_conflicts(app, run);
  add_show(app, run);
  add_forget(app, run);
  add_erase(app, run);
  add_pause(app, run);
  add_resume(app, run);
  add_purge(app, run);
  add_failed(app, run);
  add_redrive(app, run);
  add_audit(app, run);
  add_outbox(app, run);
  add_relay(app, run);
}

}  // namespace txinbox::cli
