#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sections.hpp"

namespace soci {
class session;
}

// The parts of the section about the outbox.

namespace txinbox::bench {

/// Compares a handler that adds a message with a handler that runs the same INSERT by hand.
Json measure_outbox_add(const Target&, const OutboxOptions&);

/// Measures a relay that finds a backlog. Its publisher only confirms.
Json measure_outbox_drain(const Target&, const OutboxOptions&);

/// Measures the batches of a relay in two tables: a new table, and a table with many deleted rows that another
/// transaction still sees. The messages have this number of keys.
Json measure_outbox_snapshot(const Target&, const OutboxOptions&, int keys);

/// Compares a relay that has keys in front of the others whose messages always fail, with a relay that has none.
Json measure_outbox_failing(const Target&, const OutboxOptions&);

/// Measures the time from a commit to the publisher's call, with and without `wake`.
Json measure_outbox_delay(const Target&, const OutboxOptions&);

/// The content of every message: 200 bytes.
std::string outbox_payload();

/// The id of the n-th message, for n below 2^32. The ids of successive messages are far apart, like random ids.
std::string outbox_id(unsigned long long n);

/// The number of the message with this id.
unsigned long long outbox_number(const std::string& id);

/// Adds this number of messages to an empty outbox. Successive messages have different keys. Then lets the server write
/// all rows to the disk.
void fill_outbox(soci::session&, long long rows, int keys);

}  // namespace txinbox::bench
