#pragma once

#include "console/command.hpp"

namespace txinbox::cli {

// Each function adds its subcommand to the command. If the user chooses it, it sets `run`.

void add_migrate(Command app, Run& run);
void add_doctor(Command app, Run& run);
void add_serve(Command app, Run& run);
void add_consume(Command app, Run& run);
void add_status(Command app, Run& run);
void add_leases(Command app, Run& run);
void add_conflicts(Command app, Run& run);
void add_show(Command app, Run& run);
void add_forget(Command app, Run& run);
void add_erase(Command app, Run& run);
void add_pause(Command app, Run& run);
void add_resume(Command app, Run& run);
void add_purge(Command app, Run& run);
void add_failed(Command app, Run& run);
void add_audit(Command app, Run& run);
void add_redrive(Command app, Run& run);
void add_outbox(Command app, Run& run);
void add_relay(Command app, Run& run);

}  // namespace txinbox::cli
