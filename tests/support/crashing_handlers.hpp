#pragma once

#include <unistd.h>

#include <soci/soci.h>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/tx_consumer.hpp>

#include "support/failing_deliveries.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {

inline const ConsumerOptions counting{.max_attempts = 2, .count_starts = true};

/// The exit status of a process whose handler ends it.
inline constexpr int died = 9;
inline void crash(soci::session&, Delivery&) { ::_exit(died); }
inline void crash_leased(Lease&) { ::_exit(died); }

/// The number of markers of started attempts.
inline long long markers(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_failed_message where running_token is not null");
}

inline long long exclusive_markers(const TestDatabase& db) {
  return db.number("select count(*) from txinbox_failed_message where running_alone = 1");
}

/// Leaves a marker like that of a process that crashed in an exclusive attempt.
inline void leave_exclusive_marker(const TestDatabase& db) {
  db.run("update txinbox_failed_message set running_alone = 1, running_token = " +
         here<std::string>("x'00112233445566778899aabbccddeeff'", "x'00112233445566778899aabbccddeeff'",
                           "'00112233-4455-6677-8899-aabbccddeeff'"));
}

}  // namespace txinbox::test
