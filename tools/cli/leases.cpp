#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"

namespace txinbox::cli {
namespace {

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct LeasesOptions {
  DatabaseOption database;
  LeaseFilter filter{.limit = 100};
  bool json = false;
};

std::string as_json(const std::vector<LeaseInfo>& leases) {
  auto list = Json::array();
  for (const auto& lease : leases) {
    list.append({{"consumer", lease.consumer},
                 {"business_key", lease.business_key},
                 {"message_id", lease.message_id},
                 {"owner", lease.owner},
                 {"fence", lease.fence},
                 {"attempts", lease.attempts},
                 {"since", time_text(lease.since)},
                 {"expires_at", time_text(lease.expires_at)},
                 {"held_ms", lease.held.count()},
                 {"remaining_ms", lease.remaining.count()}});
  }
  return list.text();
}

std::string left_of(const LeaseInfo& lease) {
  if (lease.remaining > milliseconds::zero()) return human_age(ceil<seconds>(lease.remaining));
  if (!lease.expires_at) return "expired";
  return fmt::format("expired {} ago", human_age(floor<seconds>(-lease.remaining)));
}

std::string as_table(const std::vector<LeaseInfo>& leases) {
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

int run_leases(const LeasesOptions& options) {
  auto pool = open_for_reading(options.database);
  auto connection = pool.acquire();
  LeaseFilter filter = options.filter;
  ++filter.limit;  // to find out whether there are more
  auto leases = list_leases(connection.session(), filter);
  const bool more = leases.size() > options.filter.limit;
  if (more) leases.pop_back();

  Output output;
  output.line(options.json ? as_json(leases) : as_table(leases));
  if (leases.empty()) say_if_unknown(connection.session(), options.filter.consumer);
  if (more) message(fmt::format("txinbox: there are more than {}; --limit shows more", options.filter.limit));
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_leases(Command app, Run& run) {
  auto options = std::make_shared<LeasesOptions>();
  auto command = app.subcommand("leases", "List the leases: the owner of each key, since when and until when");
  options->database.add_to(command);
  command.option("--consumer", options->filter.consumer, "Only of this consumer").type("NAME");
  command.option("--limit", options->filter.limit, "The most rows to list, from 1 to 100000")
      .type("N")
      .with_default()
      .range(1, 100'000);
  command.flag("--json", options->json, "Print JSON");
  command.add_help({"txinbox leases --consumer payments"},
                   {{exit_ok, "success, even if the list is empty"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_leases(*options); });
}

}  // namespace txinbox::cli
