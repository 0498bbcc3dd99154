#pragma once

#include <string>

#include <doctest/doctest.h>
#include <txinbox/lease.hpp>
#include <txinbox/pool.hpp>

#include "support/effects.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {

struct Leases {
  EffectDatabase db;
  Pool pool = db.pool(4);
};

inline constexpr Outcome in_progress = Outcome::in_progress;
inline const Message order{.business_key = "order123", .message_id = "m1"};

inline void nothing(Lease&) {}
inline void must_not_run(Lease&) { FAIL("a handler ran that must not"); }

inline std::string row_state(const TestDatabase& db) { return db.text("select state from txinbox_consumed_message"); }

/// As if the lease's time had passed.
inline void let_run_out(const TestDatabase& db) {
  db.run("update txinbox_consumed_message set lease_expires_at = " +
         here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'"));
}

}  // namespace txinbox::test
