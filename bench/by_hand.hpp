#pragma once

#include <span>

#include <txinbox/message.hpp>

namespace soci {
class session;
}

// The benchmark compares `consume` with these transactions, as people write them by hand.

namespace txinbox::bench {

class ClientApi;

/// BEGIN, UPDATE, COMMIT: without a table of keys.
void update_without_dedup(ClientApi&, const Message&);

/// BEGIN, INSERT, UPDATE, COMMIT. For a duplicate: BEGIN, INSERT, ROLLBACK. Returns whether the message was new.
bool consume_by_hand(ClientApi&, const Message&);

/// The same with SOCI's one-off statements.
bool consume_by_soci(soci::session&, const Message&);

/// BEGIN, all claims in the fastest way, one UPDATE for each message, COMMIT. All messages must be new and sorted by
/// key.
void consume_batch_by_hand(ClientApi&, std::span<const Message>);

/// The same with one UPDATE for all messages.
void consume_batch_at_once_by_hand(ClientApi&, std::span<const Message>);

}  // namespace txinbox::bench
