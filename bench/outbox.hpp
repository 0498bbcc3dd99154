#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sections.hpp"

namespace soci {
class session;
}

// The parts of the section about the outbox.

namespace txinbox::bench {

/// A handler that adds a message, against one that runs the same INSERT by hand.
Json measure_outbox_add(const Target&, const OutboxOptions&);

/// A relay that finds a backlog, with a publisher that only confirms.
Json measure_outbox_drain(const Target&, const OutboxOptions&);

/// The batches of a relay after many deletions that another transaction still sees, and on a fresh table.
Json measure_outbox_snapshot(const Target&, const OutboxOptions&);

/// The time from a commit to the publisher's call, with the wake-up and without.
Json measure_outbox_delay(const Target&, const OutboxOptions&);

/// The content of every message: 200 bytes.
std::string outbox_payload();

/// The id of the n-th message, for n below 2^32. Neighbours are far apart, as random ids are.
std::string outbox_id(unsigned long long n);

/// The number of the message with this id.
unsigned long long outbox_number(const std::string& id);

/// Adds that many messages, whose keys take turns, to an empty outbox; then has the server write them out.
void fill_outbox(soci::session&, long long rows, int keys);

}  // namespace txinbox::bench
