#pragma once

#include <txinbox/lease_consumer.hpp>
#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

namespace txinbox::test {

/// The handler's work under a lease: in a transaction of its own, on a connection of the pool, and only if no
/// greater fence has been there for its key, as a service does that remembers the greatest. Then it renews
/// the lease, so that a fault can strike there as well.
LeaseHandler fenced(Pool&, const Handler&);

}  // namespace txinbox::test
