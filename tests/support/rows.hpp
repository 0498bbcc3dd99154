#pragma once

#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/tx_consumer.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// Consumes messages with a handler that does nothing.
inline void consume(const TestDatabase& db, const std::string& consumer, const std::vector<std::string>& keys) {
  Pool pool = db.pool(1);
  TxConsumer all(pool, consumer);
  for (const std::string& key : keys) (void)all.consume({.business_key = key}, [](soci::session&, Delivery&) {});
}

/// Changes columns of a key's row. The assignments are SQL.
inline void set_row(const TestDatabase& db, const std::string& key, const std::string& change) {
  db.run("update txinbox_consumed_message set " + change + " where business_key = '" + key + "'");
}

}  // namespace txinbox::test
