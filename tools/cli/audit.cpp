#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <txinbox/operations.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/row_json.hpp"
#include "cli/row_list.hpp"
#include "cli/subcommands.hpp"
#include "console/exit_status.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"

namespace txinbox::cli {
namespace {

struct AuditOptions : RowListOptions<AuditFilter> {
  std::string newer_than;
};

std::string audit_as_table(const std::vector<AuditRecord>& records) {
  if (records.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{
      {"AT (UTC)", "BY", "ACTION", "CONSUMER", "BUSINESS KEY", "MESSAGES", "REASON"}};
  for (const auto& each : records) {
    rows.push_back({time_to_the_second(each.at), each.actor, each.action, each.consumer, each.business_key,
                    std::to_string(each.messages), each.reason});
  }
  return format_table(rows, {false, false, false, false, false, true}, {.columns = terminal_size().columns});
}

AuditFilter filter_of(const AuditOptions& options) {
  AuditFilter filter = options.filter;
  if (options.newer_than.empty()) return filter;
  filter.newer_than = std::chrono::floor<std::chrono::seconds>(duration_of("--newer-than", options.newer_than));
  return filter;
}

}  // namespace

void add_audit(Command app, Run& run) {
  auto options = std::make_shared<AuditOptions>();
  auto command = app.subcommand("audit", "List the changes that operators have made");
  options->add_to(command);
  command.option("key", options->filter.business_key, "Only of this business key").shown_as("[BUSINESS_KEY]");
  command.option("--by", options->filter.actor, "Only changes by this actor").type("NAME");
  command.option("--action", options->filter.action, "Only this action, such as retry, discard, forget or pause")
      .type("ACTION");
  command.option("--newer-than", options->newer_than, "Only changes of this last time (30m, 12h, 7d)").type("AGE");
  command.add_help({"txinbox audit --newer-than 7d", "txinbox audit --consumer payments -- order-7"},
                   {{exit_ok, "success, even if the list is empty"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] {
    const auto list = [](soci::session& session, const AuditFilter& filter) { return list_audit(session, filter); };
    AuditOptions chosen = *options;
    chosen.filter = filter_of(*options);
    return print_rows(
        chosen, list, [](const auto& rows) { return row_json(rows); }, audit_as_table);
  });
}

}  // namespace txinbox::cli
