// The procedures that the migration creates on MySQL, and the ways in which they can be missing.

#include <optional>
#include <string>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/proxy.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

/// A service whose user may execute these procedures.
class Service {
 public:
  enum class May { execute_none, execute_begin, execute_both };

  Service(const EffectDatabase& db, May may) : db_(db), user_(db) {
    grant_service(user_, db);
    user_.grant("select, insert, update on " + schema_of(db) + ".effect");
    if (may != May::execute_none) user_.grant(execute("txinbox_begin_and_claim"));
    if (may == May::execute_both) user_.grant(execute("txinbox_confirm_and_commit"));
    // The user can connect only after the grants.
    proxy_.emplace(user_.url());
    pool_.emplace(open_pool(proxy_->url(), {.connections = 1}));
    consumer_.emplace(*pool_, "svc");
    (void)consume("warm-up");
  }

  void revoke(const std::string& procedure) const { user_.revoke(execute(procedure)); }

  Result consume(const std::string& key, const Handler& handler = add_effect) {
    return consumer_->consume({.business_key = key}, handler);
  }

  /// The round trips of a new key, without those of its handler.
  int round_trips() {
    const int before = proxy_->round_trips();
    (void)consume("counted", [](soci::session&, Delivery&) {});
    return proxy_->round_trips() - before;
  }

 private:
  std::string execute(const std::string& procedure) const {
    return "execute on procedure " + schema_of(db_) + "." + procedure;
  }

  const EffectDatabase& db_;
  const User user_;
  std::optional<Proxy> proxy_;
  std::optional<Pool> pool_;
  std::optional<TxConsumer> consumer_;
};

using May = Service::May;

TEST_CASE("with EXECUTE on MySQL's procedures a message takes two round trips, and without it takes more" *
          doctest::skip(!has_procedures())) {
  for (const May may : {May::execute_none, May::execute_begin, May::execute_both}) {
    const EffectDatabase db;
    Service service(db, may);
    CHECK(service.consume("k").outcome == Outcome::consumed);
    CHECK(service.consume("k").outcome == Outcome::already_consumed);
    CHECK(db.effects_of("k") == 1);
    if (may == May::execute_both) {
      CHECK(service.round_trips() == 2);
    } else {
      CHECK(service.round_trips() > 2);
    }
  }
}

TEST_CASE("with and without EXECUTE on MySQL's procedures, a handler's own commit never counts as consumed" *
          doctest::skip(!has_procedures())) {
  for (const May may : {May::execute_none, May::execute_begin, May::execute_both}) {
    const EffectDatabase db;
    Service service(db, may);
    CHECK_THROWS_AS((void)service.consume("commits", [](soci::session& sql, Delivery&) { sql << "commit"; }), Error);
    CHECK_THROWS_AS((void)service.consume("ddl", [](soci::session& sql, Delivery&) { sql << "drop table no_table"; }),
                    std::exception);
    CHECK_THROWS_AS((void)service.consume("begins again",
                                          [](soci::session& sql, Delivery&) {
                                            sql << "commit";
                                            sql << "insert into effect values ('left')";
                                          }),
                    Error);
    CHECK(db.claim_of("commits") == "torn");
    CHECK(db.claim_of("begins again") == "torn");
    CHECK(db.effects_of("left") == 0);
    CHECK(service.consume("after").outcome == Outcome::consumed);
    CHECK(db.claim_of("after") == "consumed");
  }
}

TEST_CASE("a service continues if MySQL's procedures or the privileges for them are removed" *
          doctest::skip(!has_procedures())) {
  const EffectDatabase db;
  Service service(db, May::execute_both);
  const auto consume_both_ways = [&](const std::string& key) {
    CHECK(service.consume(key).outcome == Outcome::consumed);
    CHECK(service.consume(key).outcome == Outcome::already_consumed);
    CHECK(db.claim_of(key) == "consumed");
    CHECK(db.effects_of(key) == 1);
  };

  SUBCASE("the privilege to commit") { service.revoke("txinbox_confirm_and_commit"); }
  SUBCASE("the privilege to begin") { service.revoke("txinbox_begin_and_claim"); }
  SUBCASE("the procedure that commits") { db.run("drop procedure txinbox_confirm_and_commit"); }
  SUBCASE("the procedure that begins") { db.run("drop procedure txinbox_begin_and_claim"); }
  SUBCASE("the procedure that commits, while a handler runs") {
    const auto dropping = [&](soci::session& sql, Delivery& delivery) {
      db.run("drop procedure txinbox_confirm_and_commit");
      add_effect(sql, delivery);
    };
    CHECK(service.consume("dropping", dropping).outcome == Outcome::consumed);
    CHECK(db.claim_of("dropping") == "consumed");
  }
  consume_both_ways("a");
  consume_both_ways("b");
}

TEST_CASE("MySQL's procedures are strict for any sql_mode of the migration's session, and migrate keeps this sql_mode" *
          doctest::skip(!has_procedures())) {
  const EffectDatabase db;
  const std::string mode_of_procedures =
      "select group_concat(distinct sql_mode) from information_schema.routines where routine_schema = database() and "
      "routine_name like 'txinbox%'";
  db.run("drop procedure txinbox_begin_and_claim");
  db.run("drop procedure txinbox_confirm_and_commit");
  db.run("delete from txinbox_schema");
  const auto mode_after = [&](soci::session& sql, bool is_refused) {
    sql << "set sql_mode = 'ANSI_QUOTES'";
    if (is_refused) {
      CHECK_THROWS_AS(migrate(sql), soci::soci_error);
    } else {
      migrate(sql);
    }
    std::string text;
    sql << "select @@sql_mode", soci::into(text);
    return text;
  };
  const User user(db);
  user.grant("create, alter, index, select, insert, update on " + schema_of(db) + ".*");
  CHECK(mode_after(*TestDatabase::session_through(user.url()), true) == "ANSI_QUOTES");
  CHECK(db.text(mode_of_procedures).empty());
  CHECK(mode_after(*db.session(), false) == "ANSI_QUOTES");
  CHECK(db.text(mode_of_procedures) == "STRICT_ALL_TABLES");
}

}  // namespace
}  // namespace txinbox::test
