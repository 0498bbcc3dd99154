#pragma once

#include <string>

#include <soci/soci.h>
#include <txinbox/delivery.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {

/// A migrated database with a table of effects. Each time a handler takes effect, it inserts one row.
class EffectDatabase : public TestDatabase {
 public:
  /// Bytes on MySQL, because a column of text accepts only its character set.
  EffectDatabase() {
    run(std::string("create table effect (id ") + (on_mysql() ? "varbinary" : "varchar") + "(255) not null)");
  }

  long long effects() const { return number("select count(*) from effect"); }
  long long effects_of(const std::string& id) const {
    return number("select count(*) from effect where id = '" + id + "'");
  }

  /// The state of a claim, or "none".
  std::string claim_of(const std::string& key, const std::string& condition = "") const {
    const std::string state =
        text("select state from txinbox_consumed_message where business_key = '" + key + "'" + condition);
    return state.empty() ? "none" : state;
  }
  long long claims() const { return number("select count(*) from txinbox_consumed_message"); }

  /// The settings of a session that a consumer must not change.
  std::string settings_of(soci::session&) const;
};

/// A handler that inserts one effect.
inline void add_effect(soci::session& sql, Delivery& delivery) {
  sql << "insert into effect values (:id)", soci::use(delivery.message().business_key);
}

}  // namespace txinbox::test
