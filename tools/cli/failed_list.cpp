#include "cli/failed.hpp"

#include <fmt/format.h>

#include "cli/age.hpp"
#include "cli/key_file.hpp"
#include "cli/known_consumer.hpp"
#include "cli/row_json.hpp"
#include "cli/row_list.hpp"
#include "console/exit_status.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/table.hpp"
#include "console/terminal.hpp"
#include "console/usage_error.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

/// The age of the first failure. If its time is unknown, the age of the last failure.
std::chrono::seconds first_age(const FailedMessage& failed) {
  if (!failed.first_failed_at || !failed.last_failed_at) return failed.age;
  return failed.age + std::chrono::floor<std::chrono::seconds>(*failed.last_failed_at - *failed.first_failed_at);
}

int print_payload(Output& output, const FailedMessage& failed) {
  if (!failed.payload) {
    message(
        "txinbox: this message has no stored payload; Message::payload, or txinbox consume --keep-payload, stores it");
    return exit_found;
  }
  output.lines(*failed.payload);
  return output.failed() ? exit_stopped : exit_ok;
}

/// The messages that the filters choose, for each key of the file. `all`: false if one of the keys has none.
std::vector<FailedMessage> list_keys(soci::session& session, const FailedOptions& options,
                                     const std::vector<FileKey>& keys, bool& all) {
  std::vector<FailedMessage> listed;
  for_each_key(keys, [&](const FileKey& each) {
    auto found = list_failed(session, options.with_key(each.key).filter());
    if (found.empty()) {
      all = false;
      message(fmt::format("txinbox: line {}: no failed message of the business key '{}' is chosen", each.line,
                          printable(each.key)));
    }
    if (listed.size() <= options.limit) std::move(found.begin(), found.end(), std::back_inserter(listed));
  });
  return listed;
}

std::string failed_table(const std::vector<FailedMessage>& messages) {
  std::vector<std::vector<std::string>> rows{
      {"CONSUMER", "BUSINESS KEY", "STATE", "ATTEMPTS", "FIRST", "FIRST ERROR", "LAST", "LAST ERROR"}};
  for (const auto& failed : messages) {
    rows.push_back({failed.consumer, failed.business_key, std::string(to_string(failed.state)),
                    std::to_string(failed.attempts), human_age(first_age(failed)), failed.first_error,
                    human_age(failed.age), failed.last_error});
  }
  return format_table(rows, {false, false, false, true, true, false, true}, {.columns = terminal_size().columns});
}

}  // namespace

int run_failed_list(const FailedOptions& options) {
  if (options.has_file()) {
    options.check_choice("failed list");
    if (options.payload) throw UsageError("failed list: --payload is for one message, not for --keys-from");
  }
  if (options.payload && (options.key.empty() || options.consumer.empty())) {
    throw UsageError("failed list: --payload is for one message: say which, with --consumer NAME BUSINESS_KEY");
  }
  const std::vector<FileKey> keys = options.has_file() ? read_keys(options.keys_from) : std::vector<FileKey>();
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  soci::session& session = connection.session();
  bool all = true;
  auto failed =
      options.has_file() ? list_keys(session, options, keys, all) : list_failed(session, one_more(options.filter()));
  const bool more = cut_to(failed, options.limit);

  Output output;
  if (failed.empty() && !options.key.empty()) {
    if (options.json) output.line("[]");
    message(
        "txinbox: no failed message of this business key is chosen; one that was consumed since is not listed, one "
        "that was discarded with --state discarded");
    say_if_unknown(session, options.consumer);
    return exit_found;
  }
  if (options.payload && !options.json) return print_payload(output, failed.front());
  output.line(options.json     ? row_json(failed, options.payload)
              : failed.empty() ? "nothing found"
                               : failed_table(failed));
  say_if_more(more, options.limit);
  if (failed.empty()) say_if_unknown(session, options.consumer);
  if (output.failed()) return exit_stopped;
  return all ? exit_ok : exit_found;
}

}  // namespace txinbox::cli
