#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace txinbox::cli {

/// What the chosen subcommand does; the result is the exit status.
using Run = std::function<int()>;

// Each adds itself to the command and sets `run` when it is chosen.

void add_migrate(CLI::App& app, Run& run);
void add_doctor(CLI::App& app, Run& run);
void add_consume(CLI::App& app, Run& run);
void add_status(CLI::App& app, Run& run);
void add_leases(CLI::App& app, Run& run);
void add_show(CLI::App& app, Run& run);
void add_forget(CLI::App& app, Run& run);
void add_purge(CLI::App& app, Run& run);
void add_failed(CLI::App& app, Run& run);

}  // namespace txinbox::cli
