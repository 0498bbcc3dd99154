#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <txinbox/inspect.hpp>

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

using ConflictsOptions = RowListOptions<ConflictFilter>;

/// The first digits of a hash: enough to see which contents are the same.
std::string short_hash(const std::string& hash) {
  constexpr std::size_t digits = 8;
  return hash.substr(0, digits);
}

std::string conflicts_as_table(const std::vector<ConflictingContent>& conflicts) {
  if (conflicts.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{{"CONSUMER", "BUSINESS KEY", "MESSAGE ID", "CONTENT", "DELIVERIES",
                                              "LAST (UTC)", "AGE", "STATE", "ORIGINAL ID", "ORIGINAL"}};
  for (const auto& each : conflicts) {
    rows.push_back({each.consumer, each.business_key, each.message_id, short_hash(each.content_hash),
                    std::to_string(each.deliveries), time_to_the_second(each.last_at), human_age(each.age), each.state,
                    each.original_message_id, short_hash(each.original_hash)});
  }
  return format_table(rows, {false, false, false, false, true, true, true}, {.columns = terminal_size().columns});
}

}  // namespace

void add_conflicts(Command app, Run& run) {
  auto options = std::make_shared<ConflictsOptions>();
  auto command = app.subcommand("conflicts", "List the messages that had a known key and other content");
  options->add_to(command);
  command.option("key", options->filter.business_key, "Only of this business key").shown_as("[BUSINESS_KEY]");
  command.add_help({"txinbox conflicts --consumer payments", "txinbox conflicts --consumer payments -- order-7"},
                   {{exit_ok, "success, even if the list is empty"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] {
    const auto list = [](soci::session& session, const ConflictFilter& filter) {
      return list_conflicts(session, filter);
    };
    return print_rows(
        *options, list, [](const auto& rows) { return row_json(rows); }, conflicts_as_table);
  });
}

}  // namespace txinbox::cli
