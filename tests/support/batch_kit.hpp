#pragma once

// Helpers of the tests of batch handlers.

#include <span>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/pool.hpp>
#include <txinbox/tx_consumer.hpp>

#include "support/effects.hpp"

namespace txinbox::test {

using Deliveries = std::span<Delivery>;

inline void add_effects(soci::session& sql, Deliveries deliveries) {
  for (Delivery& each : deliveries) add_effect(sql, each);
}

/// Runs the test on a pool and on a caller's session.
template <class Test>
void on_each_connection(const Test& test) {
  for (const bool pooled : {true, false}) {
    CAPTURE(pooled);
    const EffectDatabase db;
    Pool pool = db.pool();
    const auto sql = db.session();
    TxConsumer consumer = pooled ? TxConsumer(pool, "svc") : TxConsumer(*sql, "svc");
    test(db, consumer);
  }
}

}  // namespace txinbox::test
