#include "failed_change.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <soci/soci.h>
#include <nlohmann/json.hpp>

#include "exit_status.hpp"
#include "open_database.hpp"
#include "output.hpp"

namespace txinbox::cli {
namespace {

constexpr std::size_t at_once = 1000;

struct Change {
  std::string_view command;
  std::string_view done;
  std::size_t (*run)(soci::session&, const FailedFilter&);
  std::vector<FailedState> states;  ///< That it can change.
  std::string_view meaning;
};

std::string count_of(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

/// One state after the other: what cannot be changed is not listed again and again. Nor is what fails anew
/// meanwhile: its last failure is younger than this call.
std::size_t change_all(soci::session& session, const Change& change, const FailedOptions& options) {
  const auto began = std::chrono::steady_clock::now();
  std::size_t changed = 0;
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
      some = change.run(session, filter);
      changed += some;
    } while (some > 0 && options.all);
  }
  return changed;
}

/// At most `at_once`.
std::size_t count_in(soci::session& session, const FailedOptions& options, FailedState state) {
  FailedFilter filter = options.filter();
  filter.state = state;
  filter.limit = at_once;
  return list_failed(session, filter).size();
}

void say_why_not(const FailedOptions& options, std::size_t running, std::size_t discarded) {
  if (options.all) {
    message("txinbox: nothing that was chosen can be changed; txinbox failed list shows what there is");
  } else if (running > 0) {
    message("txinbox: the message is being consumed, under a lease; try again when that has ended or run out");
  } else if (discarded > 0) {
    message("txinbox: the message was discarded; txinbox forget lets its next delivery run");
  } else {
    message("txinbox: no failed message of this consumer and business key is chosen");
  }
}

int run_change(const Change& change, const FailedOptions& options) {
  options.check_choice(fmt::format("failed {}", change.command));
  auto pool = open_database(options.database);
  auto connection = pool.acquire();
  soci::session& session = connection.session();
  const std::size_t changed = change_all(session, change, options);
  const bool changes_torn = std::ranges::find(change.states, FailedState::torn) != change.states.end();
  const std::size_t torn = changes_torn || !options.state.empty() ? 0 : count_in(session, options, FailedState::torn);

  Output output;
  if (options.json) {
    nlohmann::ordered_json json = {{change.done, changed}};
    if (!changes_torn) json["torn"] = torn;
    output.line(json.dump());
  } else if (changed > 0) {
    output.line(fmt::format("{} {}: {}", change.done, count_of(changed, "message", "messages"), change.meaning));
  }
  if (torn > 0) {
    message(
        fmt::format("txinbox: {} torn{}: the handler committed a part of the effect. Repair the data, then "
                    "txinbox forget lets the next delivery run",
                    count_of(torn, "message is", "messages are"), torn == at_once ? ", or more" : ""));
  } else if (changed == 0) {
    say_why_not(options, count_in(session, options, FailedState::running),
                count_in(session, options, FailedState::discarded));
  }
  if (output.failed()) return exit_stopped;
  return changed > 0 ? exit_ok : exit_found;
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
