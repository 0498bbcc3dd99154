#pragma once

#include <txinbox/lease_consumer.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

namespace txinbox::test {

/// Runs the handler under a lease: in a transaction of its own, on a connection of the pool, and only if its key has
/// seen no greater fence. Then it renews the lease, so that a fault can occur there as well.
LeaseHandler fenced(Pool&, const Handler&);

}  // namespace txinbox::test
