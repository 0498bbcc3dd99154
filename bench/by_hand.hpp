#pragma once

#include <span>

#include <txinbox/message.hpp>

namespace soci {
class session;
}

// The transactions that people write by hand, and that `consume` is compared with.

namespace txinbox::bench {

class ClientApi;

/// BEGIN, UPDATE, COMMIT: no dedup at all.
void update_without_dedup(ClientApi&, const Message&);

/// BEGIN, INSERT, UPDATE, COMMIT; a duplicate is BEGIN, INSERT, ROLLBACK. Returns whether it was new.
bool consume_by_hand(ClientApi&, const Message&);

/// The same with SOCI's one-off statements.
bool consume_by_soci(soci::session&, const Message&);

/// BEGIN, all claims in the fastest way, one UPDATE for each message, COMMIT. All must be new; they are
/// sorted already.
void consume_batch_by_hand(ClientApi&, std::span<const Message>);

/// The same with one UPDATE for all messages.
void consume_batch_at_once_by_hand(ClientApi&, std::span<const Message>);

}  // namespace txinbox::bench
