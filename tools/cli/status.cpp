#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <soci/error.h>
#include <txinbox/error.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/result.hpp>

#include "cli/help_text.hpp"
#include "cli/known_consumer.hpp"
#include "cli/status_text.hpp"
#include "cli/subcommands.hpp"
#include "console/database_option.hpp"
#include "console/describe_error.hpp"
#include "console/exit_status.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/stop_signals.hpp"
#include "console/terminal.hpp"

namespace txinbox::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct StatusOptions {
  DatabaseOption database;
  std::string consumer;
  bool watch = false;
  bool json = false;
};

struct Look {
  InboxStatus status;
  Pauses pauses;
  Clock::time_point at;
  Clock::duration cost;
};

/// The pauses of this consumer, or of all if the name is empty. None if the database has no table of pauses yet, or if
/// this user may not read it: the counts are correct all the same.
Pauses pauses_of(soci::session& session, const std::string& consumer) {
  Pauses pauses;
  try {
    pauses = list_pauses(session);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::schema_missing) throw;
  } catch (const soci::soci_error&) {
    if (is_transient(std::current_exception())) throw;
  }
  std::erase_if(pauses, [&](const ConsumerPause& each) { return !consumer.empty() && each.consumer != consumer; });
  return pauses;
}

Look look(Pool& pool, const std::string& consumer) {
  const auto start = Clock::now();
  auto connection = pool.acquire();
  InboxStatus found = inbox_status(connection.session(), consumer);
  Pauses pauses = pauses_of(connection.session(), consumer);
  return {std::move(found), std::move(pauses), start, Clock::now() - start};
}

/// The escape sequences that write the text over the previous one. They clear the rest of each line, and everything
/// below the text, so that nothing flickers. The text has at most as many lines as the terminal: more lines would make
/// it scroll.
std::string over_the_last(const std::string& text, bool first) {
  const std::size_t rows = terminal_size().rows;
  std::string screen = first ? "\x1b[2J\x1b[H" : "\x1b[H";
  std::size_t lines = 0;
  for (std::size_t at = 0; at <= text.size() && (rows < 2 || ++lines < rows);) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    screen += text.substr(at, end - at) + "\x1b[K\n";
    at = end + 1;
  }
  return screen + "\x1b[J";
}

bool print(Output& output, const std::string& text, bool json, bool first) {
  if (json) return output.line(text);
  if (is_terminal()) return output.lines(over_the_last(text, first));
  return output.line(first ? text : '\n' + text);
}

/// Every two seconds. If the query is slow, less often: the database is busy with it for a fifth of the time at most.
std::chrono::milliseconds pause_after(Clock::duration cost) {
  constexpr std::chrono::milliseconds redraw_every{2'000};
  constexpr int share = 4;
  return std::max(redraw_every, std::chrono::duration_cast<std::chrono::milliseconds>(share * cost));
}

int watch(Pool& pool, const StatusOptions& options, const StopSignals& signals) {
  Output output;
  std::optional<Look> last;
  while (!signals.stopped()) {
    auto pause = pause_after({});
    try {
      const bool first = !last;
      Look now = look(pool, options.consumer);
      if (first && now.status.consumers.empty()) say_if_unknown(pool.acquire().session(), options.consumer);
      const Rates rates = last ? rates_between(last->status, now.status, now.at - last->at) : Rates();
      last = std::move(now);
      pause = pause_after(last->cost);
      const auto text = options.json ? status_json(last->status, rates, last->pauses)
                                     : status_text_fitting(last->status, rates, terminal_size(), last->pauses);
      if (!print(output, text, options.json, first)) return exit_stopped;
    } catch (...) {
      const auto error = std::current_exception();
      if (!is_transient(error)) throw;
      message("txinbox: " + describe_error(error));
    }
    pollfd wait{signals.wake_fd(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(pause.count()));
  }
  return exit_ok;
}

int run_status(const StatusOptions& options) {
  std::optional<StopSignals> signals;
  if (options.watch) signals.emplace();
  auto pool = open_for_reading(options.database);
  if (signals) return watch(pool, options, *signals);
  const Look found = look(pool, options.consumer);
  if (found.status.consumers.empty()) say_if_unknown(pool.acquire().session(), options.consumer);
  Output output;
  output.line(options.json ? status_json(found.status, {}, found.pauses)
                           : status_text(found.status, {}, terminal_size().columns, found.pauses));
  return output.failed() ? exit_stopped : exit_ok;
}

}  // namespace

void add_status(Command app, Run& run) {
  auto options = std::make_shared<StatusOptions>();
  auto command = app.subcommand("status", "Count what is recorded for each consumer");
  options->database.add_to(command);
  command.option("--consumer", options->consumer, "Only of this consumer; it reads only the rows of this consumer")
      .type("NAME");
  command.flag("--watch", options->watch, "Print the counts again every two seconds, until a signal");
  command.flag("--json", options->json, "Print JSON");
  command.add_help(
      {"txinbox status --db sqlite:orders.db", "txinbox status --watch --consumer order-service"},
      {{exit_ok, "success, even if a signal ended --watch"}, usage_status, database_status, output_status});
  command.on_chosen(run, [options] { return run_status(*options); });
}

}  // namespace txinbox::cli
