#pragma once

#include <txinbox/lease_consumer.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

namespace txinbox::test {

/// Runs the handler under a lease, in a separate transaction on a connection of the pool. The handler runs only if its
/// key has no greater fence. Afterwards the lease is renewed, so that a fault can also occur during the renewal.
LeaseHandler fenced(Pool&, const Handler&);

}  // namespace txinbox::test
