#pragma once

#include <string>

#include <txinbox/pool.hpp>

#include "support/effects.hpp"
#include "support/lease_subject.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {

struct Leases {
  EffectDatabase db;
  Pool pool = db.pool(4);
};

inline std::string row_state(const TestDatabase& db) { return db.text("select state from txinbox_consumed_message"); }

/// Makes the lease expire.
inline void let_run_out(const TestDatabase& db) {
  db.run("update txinbox_consumed_message set lease_expires_at = " +
         here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'"));
}

}  // namespace txinbox::test
