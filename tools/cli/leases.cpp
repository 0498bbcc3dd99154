#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
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

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;

using LeasesOptions = RowListOptions<LeaseFilter>;

std::string left_of(const LeaseInfo& lease) {
  if (lease.remaining > milliseconds::zero()) return human_age(ceil<seconds>(lease.remaining));
  if (!lease.expires_at) return "expired";
  return fmt::format("expired {} ago", human_age(floor<seconds>(-lease.remaining)));
}

std::string leases_as_table(const std::vector<LeaseInfo>& leases) {
  if (leases.empty()) return "nothing found";
  std::vector<std::vector<std::string>> rows{
      {"CONSUMER", "BUSINESS KEY", "OWNER", "ATTEMPT", "SINCE (UTC)", "HELD", "UNTIL (UTC)", "LEFT"}};
  for (const auto& lease : leases) {
    rows.push_back({lease.consumer, lease.business_key, lease.owner, std::to_string(lease.attempts),
                    time_to_the_second(lease.since), human_age(floor<seconds>(lease.held)),
                    time_to_the_second(lease.expires_at), left_of(lease)});
  }
  return format_table(rows, {false, false, false, true, true, true, true}, {.columns = terminal_size().columns});
}

}  // namespace

void add_leases(Command app, Run& run) {
  auto options = std::make_shared<LeasesOptions>();
  auto command = app.subcommand("leases", "List the leases: the owner of each key, since when and until when");
  options->add_to(command);
  command.add_help({"txinbox leases --consumer payments"},
                   {{exit_ok, "success, even if the list is empty"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] {
    const auto list = [](soci::session& session, const LeaseFilter& filter) { return list_leases(session, filter); };
    return print_rows(
        *options, list, [](const auto& rows) { return row_json(rows); }, leases_as_table);
  });
}

}  // namespace txinbox::cli
