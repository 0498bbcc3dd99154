#include "cli/redrive_stored.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <txinbox/failed_messages.hpp>

#include "cli/known_consumer.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/stop_signals.hpp"

namespace txinbox::cli {

namespace {

constexpr std::size_t at_once = 1'000;

/// Adds them in parts, so that a stop ends it soon. It adds no message that the relay has published, and that was
/// parked again, since it began. `added`: it adds the messages of each call there, also if a later
/// call throws.
void add_all(soci::session& session, const RedriveOptions& options, FailedFilter filter, const StopSignals& signals,
             std::size_t& added) {
  filter.limit = 1;
  const auto latest = list_failed(session, filter);
  if (latest.empty()) return;
  filter.failed_until = latest.front().last_failed_at;
  for (std::size_t now = 1; now > 0 && !signals.stopped() && (options.max == 0 || added < options.max);) {
    filter.limit = options.max == 0 ? at_once : std::min(at_once, options.max - added);
    now = redrive_stored(session, options.to, filter, options.by);
    added += now;
  }
}

}  // namespace

int run_redrive_stored(const DatabaseOption& database, const RedriveOptions& options, bool json) {
  StopSignals signals;
  auto pool = open_database(database);
  auto connection = pool.acquire();
  soci::session& session = connection.session();
  const FailedFilter filter{
      .consumer = options.consumer, .state = FailedState::parked, .error_class = options.error_class};
  std::size_t added = 0;
  if (!options.dry_run) {
    try {
      add_all(session, options, filter, signals, added);
    } catch (...) {
      message(fmt::format("txinbox: added at least {} to the outbox before the error; run it again", grouped(added)));
      throw;
    }
  }
  const FailedCount parked = count_failed(session, filter);
  const std::size_t without_payload = parked.messages - parked.with_payload;
  if (options.dry_run) added = options.max == 0 ? parked.with_payload : std::min(options.max, parked.with_payload);
  Output output;
  if (json) {
    output.line(Json{{"dry_run", options.dry_run}, {"added", added}, {"without_payload", without_payload}}.text());
  } else {
    output.line(fmt::format("{} {} to the outbox{}", options.dry_run ? "would add" : "added", grouped(added),
                            options.dry_run ? "" : "; a relay publishes what is there"));
  }
  if (without_payload > 0) {
    message(fmt::format("txinbox: left {}: their payload is not stored; txinbox consume --keep-payload stores it",
                        grouped(without_payload)));
  }
  if (added == 0 && without_payload == 0) say_if_unknown(session, options.consumer);
  if (signals.stopped() || output.failed()) return exit_stopped;
  return without_payload == 0 ? exit_ok : exit_found;
}

}  // namespace txinbox::cli
