#include "cli/redrive_stored.hpp"

#include <fmt/format.h>

#include "cli/known_consumer.hpp"
#include "console/exit_status.hpp"
#include "console/json_output.hpp"
#include "console/open_database.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/stop_signals.hpp"

namespace txinbox::cli {

int run_redrive_stored(const DatabaseOption& database, const std::string& topic, StoredRedriveOptions options,
                       bool json) {
  StopSignals signals;
  options.stop = signals.token();
  auto pool = open_database(database);
  auto connection = pool.acquire();
  const StoredRedriveSummary summary = redrive_stored(connection.session(), topic, options);
  Output output;
  if (json) {
    output.line(
        Json{{"dry_run", options.dry_run}, {"added", summary.added}, {"without_payload", summary.without_payload}}
            .text());
  } else {
    output.line(fmt::format("{} {} to the outbox{}", options.dry_run ? "would add" : "added", grouped(summary.added),
                            options.dry_run ? "" : "; a relay publishes what is there"));
  }
  if (summary.without_payload > 0) {
    message(
        fmt::format("txinbox: left {}: their payload is not stored (keep_payload)", grouped(summary.without_payload)));
  }
  if (summary.added == 0 && summary.without_payload == 0) say_if_unknown(connection.session(), options.consumer);
  if (signals.stopped() || output.failed()) return exit_stopped;
  return summary.without_payload == 0 ? exit_ok : exit_found;
}

}  // namespace txinbox::cli
