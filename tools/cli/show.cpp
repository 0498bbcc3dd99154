#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>

#include "cli/age.hpp"
#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/row_json.hpp"
#include "cli/row_options.hpp"
#include "cli/subcommands.hpp"
#include "console/exit_status.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

/// The record of a key. A message that only failed has no row in the consumed-message table.
std::optional<ConsumedMessage> find_recorded(soci::session& session, const std::string& consumer,
                                             const std::string& key) {
  if (auto row = find_message(session, consumer, key)) return row;
  for (const FailedMessage& failed : list_failed(session, {.consumer = consumer, .business_key = key})) {
    return ConsumedMessage{.consumer = failed.consumer,
                           .business_key = failed.business_key,
                           .message_id = failed.message_id,
                           .state = std::string(to_string(failed.state)),
                           .consumed_at = std::nullopt,
                           .stored = std::nullopt,
                           .failures = failed.attempts,
                           .last_error = failed.last_error,
                           .last_failed_at = failed.last_failed_at};
  }
  return std::nullopt;
}

std::string lease_of(const ConsumedMessage& row) {
  return fmt::format("of {} until {} UTC", row.lease_owner, time_text(row.lease_expires_at));
}

std::string as_text(const ConsumedMessage& row) {
  std::vector<std::vector<std::string>> rows{{"consumer", row.consumer}, {"business key", row.business_key}};
  if (!row.message_id.empty()) rows.push_back({"message id", row.message_id});
  rows.push_back({"state", row.state});
  if (row.consumed_at) rows.push_back({"since", time_text(row.consumed_at) + " UTC"});
  if (!row.content_hash.empty()) rows.push_back({"content hash", row.content_hash});
  if (!row.lease_owner.empty()) rows.push_back({"lease", lease_of(row)});
  if (row.lease_fence) rows.push_back({"fence", std::to_string(*row.lease_fence)});
  if (row.failures > 0) {
    rows.push_back({"failures", fmt::format("{}, the last at {} UTC: {}", row.failures, time_text(row.last_failed_at),
                                            row.last_error)});
  }
  if (row.conflicts > 0) rows.push_back({"conflicts", std::to_string(row.conflicts)});
  if (!row.stored) return format_table(rows);
  // It is last and not aligned, because it can have several lines.
  rows.push_back({"stored", ""});
  std::string text = format_table(rows);
  const std::string label = "stored        ";
  return text.substr(0, text.rfind("stored")) + label + text_or_hex(*row.stored);
}

int run_show(const RowOptions& options) {
  const auto keys = options.keys("show");
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  Output output;
  bool any = false;
  bool all = true;
  for_each_key(keys, [&](const FileKey& each) {
    if (output.failed()) return;
    const auto row = find_recorded(connection.session(), options.consumer, each.key);
    if (!row) {
      all = false;
      options.say_no_row(each);
      return;
    }
    if (any && !options.json) output.line("");
    output.line(options.json ? row_json(*row) : as_text(*row));
    any = true;
  });
  if (!any) say_if_unknown(connection.session(), options.consumer);
  if (output.failed()) return exit_stopped;
  return all ? exit_ok : exit_found;
}

}  // namespace

void add_show(Command app, Run& run) {
  auto options = std::make_shared<RowOptions>();
  auto command = app.subcommand("show", "Print what is recorded for a business key");
  options->add_to(command);
  command.add_help({"txinbox show --consumer order-service o22",
                    "txinbox show --consumer order-service --keys-from keys.txt --json"},
                   {{exit_ok, "success"},
                    {exit_found, "nothing is recorded for a key"},
                    usage_status,
                    database_status,
                    output_status});
  command.on_chosen(run, [options] { return run_show(*options); });
}

}  // namespace txinbox::cli
