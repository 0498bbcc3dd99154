#include "outbox.hpp"

namespace txinbox::bench {

Json measure_outbox(const Target& target, const OutboxOptions& options) {
  Json result = measure_outbox_add(target, options);
  result["delay_ms"] = measure_outbox_delay(target, options);
  result["drain"] = measure_outbox_drain(target, options);
  result["failing"] = measure_outbox_failing(target, options);
  // On SQLite, other statements do not read a removed row. A snapshot only makes the log longer.
  if (target.name != "sqlite3" && options.deleted > 0) {
    for (const int keys : {10, 1'000, options.keys}) {
      result["snapshots"].push_back(measure_outbox_snapshot(target, options, keys));
    }
  }
  return result;
}

}  // namespace txinbox::bench
