#include "cli/failed.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/key_file.hpp"
#include "cli/known_consumer.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"

namespace txinbox::cli {
namespace {

constexpr std::size_t at_once = 1000;

struct Change {
  std::string_view command;
  std::string_view done;
  std::size_t (*run)(ConnectionRef, const FailedFilter&, const std::optional<OperatorAction>&);
  std::vector<FailedState> states;  ///< The states that it can change.
  std::string_view meaning;
};

std::string count_of(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// Changes one state after the other, so that messages that cannot be changed are not listed repeatedly. Messages that
/// fail during this call are not changed: their last failure is too recent for the filter. `changed`: it adds the
/// messages of each call there, also if a later call throws.
void change_all(soci::session& session, const Change& change, const FailedOptions& options, std::size_t& changed) {
  const auto began = std::chrono::steady_clock::now();
  const std::optional by(options.by.action());
  for (const FailedState state : change.states) {
    FailedFilter filter = options.filter();
    if (filter.state.value_or(state) != state) continue;
    filter.state = state;
    filter.limit = at_once;
    const auto older_than = filter.older_than;
    std::size_t some = 0;
    do {
      const auto elapsed = std::chrono::steady_clock::now() - began;
      filter.older_than = older_than + std::chrono::floor<std::chrono::seconds>(elapsed);
      some = change.run(session, filter, by);
      changed += some;
    } while (some > 0 && options.all);
  }
}

/// The number of chosen messages, up to `at_once`.
std::size_t count_in(soci::session& session, const FailedOptions& options, FailedState state) {
  FailedFilter filter = options.filter();
  filter.state = state;
  filter.limit = at_once;
  return list_failed(session, filter).size();
}

/// The reason why nothing was changed.
std::string why_not(soci::session& session, const FailedOptions& options) {
  if (options.all) return "no chosen message can be changed; txinbox failed list shows all of them";
  if (count_in(session, options, FailedState::running) > 0) {
    return "a consumer has a lease on the message; try again when the lease has ended";
  }
  if (count_in(session, options, FailedState::discarded) > 0) {
    return "the message was discarded; txinbox forget lets its next delivery run";
  }
  return "no failed message of this consumer and business key can be changed; txinbox failed list shows all of them";
}

struct Changed {
  std::size_t messages = 0;
  std::size_t torn = 0;
  std::size_t unchanged = 0;  ///< the keys in the file
};

bool changes_torn(const Change& change) {
  return std::ranges::find(change.states, FailedState::torn) != change.states.end();
}

/// `where`: a prefix of the message about keys that were not changed.
void change_some(soci::session& session, const Change& change, const FailedOptions& options, const std::string& where,
                 Changed& so_far) {
  const std::size_t before = so_far.messages;
  change_all(session, change, options, so_far.messages);
  const std::size_t changed = so_far.messages - before;
  const std::size_t torn =
      changes_torn(change) || !options.state.empty() ? 0 : count_in(session, options, FailedState::torn);
  so_far.torn += torn;
  if (changed == 0) ++so_far.unchanged;
  if (torn > 0) {
    message(
        fmt::format("txinbox: {}{} torn{}: the handler committed a part of the effect. Repair the data, then "
                    "txinbox forget lets the next delivery run",
                    where, count_of(torn, "message is", "messages are"), torn == at_once ? ", or more" : ""));
  } else if (changed == 0) {
    message(fmt::format("txinbox: {}{}", where, why_not(session, options)));
  }
}

void print(Output& output, const Change& change, const FailedOptions& options, const Changed& changed) {
  if (options.json) {
    Json json{{change.done, changed.messages}};
    if (!changes_torn(change)) json.set("torn", changed.torn);
    if (options.has_file()) json.set("unchanged", changed.unchanged);
    output.line(json.text());
  } else if (changed.messages > 0) {
    output.line(
        fmt::format("{} {}: {}", change.done, count_of(changed.messages, "message", "messages"), change.meaning));
  }
}

int run_change(const Change& change, const FailedOptions& options) {
  options.check_choice(fmt::format("failed {}", change.command));
  const std::vector<FileKey> keys = options.has_file() ? read_keys(options.keys_from) : std::vector<FileKey>();
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  soci::session& session = connection.session();
  Output output;
  Changed changed;
  try {
    if (!options.has_file()) change_some(session, change, options, "", changed);
    for_each_key(keys, [&](const FileKey& each) {
      change_some(session, change, options.with_key(each.key), fmt::format("line {}: ", each.line), changed);
    });
  } catch (...) {
    if (options.has_file()) print(output, change, options, changed);
    if (options.all) {  // each message has a transaction of its own, also in the call that failed
      message(fmt::format("txinbox: {} at least {} before the error; run it again", change.done,
                          count_of(changed.messages, "message", "messages")));
    }
    throw;
  }
  print(output, change, options, changed);
  if (changed.messages == 0) say_if_unknown(session, options.consumer);
  if (output.failed()) return exit_stopped;
  return changed.messages > 0 && (changed.unchanged == 0 || !options.has_file()) ? exit_ok : exit_found;
}

}  // namespace

int run_failed_retry(const FailedOptions& options) {
  return run_change({.command = "retry",
                     .done = "retried",
                     .run = retry_failed,
                     .states = {FailedState::parked, FailedState::failing},
                     .meaning = "the next delivery runs"},
                    options);
}

int run_failed_discard(const FailedOptions& options) {
  return run_change({.command = "discard",
                     .done = "discarded",
                     .run = discard_failed,
                     .states = {FailedState::parked, FailedState::torn, FailedState::failing},
                     .meaning = "later deliveries are acknowledged and do not run"},
                    options);
}

}  // namespace txinbox::cli
