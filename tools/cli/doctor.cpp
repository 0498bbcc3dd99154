#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <txinbox/inspect.hpp>

#include "cli/brokers/brokers.hpp"
#include "cli/help_text.hpp"
#include "cli/row_json.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"

namespace txinbox::cli {
namespace {

struct DoctorOptions {
  DatabaseOption database;
  bool json = false;
};

std::string as_table(const std::vector<Finding>& findings) {
  if (findings.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{{"SEVERITY", "SUBJECT", "FOUND", "REMEDY"}};
  for (const auto& finding : findings) {
    rows.push_back({std::string(to_string(finding.severity)), finding.subject, finding.found, finding.remedy});
  }
  return format_table(rows, {}, {.columns = terminal_size().columns, .how = Narrow::wrap});
}

std::vector<Finding> findings_of(const DatabaseOption& database) {
  if (const std::string url = database.url(); names_lease_server(url)) return diagnose_lease_server(url);
  auto pool = open_for_reading(database);
  auto connection = pool.acquire();
  return diagnose(connection.session());
}

int run_doctor(const DoctorOptions& options) {
  auto findings = findings_of(options.database);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });

  Output output;
  output.line(options.json ? row_json(findings) : as_table(findings));
  if (output.failed()) return exit_stopped;
  const bool ill = std::any_of(findings.begin(), findings.end(),
                               [](const Finding& finding) { return finding.severity != Severity::note; });
  return ill ? exit_found : exit_ok;
}

}  // namespace

void add_doctor(Command app, Run& run) {
  auto options = std::make_shared<DoctorOptions>();
  auto command = app.subcommand(
      "doctor", "Print what makes this database, or this Redis server, unsafe or slow, and the remedies");
  options->database.add_to(command);
  command.flag("--json", options->json, "Print JSON");
  command.add_help({"txinbox doctor --db sqlite:orders.db", "txinbox doctor --db redis://cache"},
                   {{exit_ok, "only notes were found"},
                    {exit_found, "an error or a warning was found"},
                    usage_status,
                    database_status,
                    output_status});
  command.on_chosen(run, [options] { return run_doctor(*options); });
}

}  // namespace txinbox::cli
