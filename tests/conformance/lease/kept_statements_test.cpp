// The statements of a lease stay prepared on a connection, although other users remove them or change the tables.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// A pool with one connection. No lease holds it while its handler runs.
struct OneConnection {
  EffectDatabase db;
  Pool pool = db.pool(1);
  LeaseConsumer consumer{pool, "svc"};

  void run(std::string_view sql) { pool.acquire().session() << std::string(sql); }

  /// Consumes a new key whose statements between the claim and the completion are `sql`. Then consumes duplicates:
  /// after three, the next key is read before it is inserted.
  void check_consumes(const std::string& key, std::string_view sql = {}) {
    const auto handler = [&](Lease& lease) {
      lease.delivery().store("result of " + key);
      if (!sql.empty()) run(sql);
    };
    CHECK(consumer.consume({.business_key = key}, handler).outcome == consumed);
    for (int i = 0; i < 4; ++i) {
      const Result again = consumer.consume({.business_key = key}, must_not_run);
      CHECK(again.outcome == duplicate);
      CHECK(again.stored == "result of " + key);
    }
  }

  long long unfinished() {
    return db.number(
        "select count(*) from txinbox_consumed_message where state <> 'consumed' or lease_owner is not null");
  }
};

TEST_CASE("a lease survives that another user removes the prepared statements, before it and during its handler" *
          doctest::skip(!on_postgresql())) {
  OneConnection t;
  t.check_consumes("a");
  for (const char* removal : {"deallocate all", "discard all"}) {
    CAPTURE(removal);
    t.run(removal);
    t.check_consumes(std::string(removal) + " before");
    t.check_consumes(std::string(removal) + " between", removal);
    t.check_consumes(std::string(removal) + " after");
  }
  CHECK(t.unfinished() == 0);
}

TEST_CASE("a failure is counted although a handler's user has removed the prepared statements" *
          doctest::skip(!on_postgresql())) {
  OneConnection t;
  t.check_consumes("a");
  for (int count = 1; count <= 2; ++count) {
    CHECK_THROWS((void)t.consumer.consume({.business_key = "b"}, [&](Lease&) {
      t.run("discard all");
      throw std::runtime_error("it failed");
    }));
    CHECK(t.db.number("select attempts from txinbox_failed_message where business_key = 'b'") == count);
  }
  t.check_consumes("b");
}

TEST_CASE("a lease survives that its table changes, before it and during its handler") {
  OneConnection t;
  t.check_consumes("a");
  int round = 0;
  for (const std::string_view change : {"alter table txinbox_consumed_message add column note varchar(10)",
                                        "alter table txinbox_consumed_message drop column note", "flush tables",
                                        "alter table txinbox_consumed_message alter column state type text"}) {
    if (change == "flush tables" && !on_mysql()) continue;
    if (change.ends_with("type text") && !on_postgresql()) continue;
    CAPTURE(change);
    ++round;
    t.db.run(std::string(change));
    t.check_consumes("before " + std::to_string(round));
  }
  t.check_consumes("during", "alter table txinbox_consumed_message add column note varchar(10)");
  CHECK(t.unfinished() == 0);
}

TEST_CASE("an expired lease is taken over and completed by statements that are prepared, with a fence above 2^31") {
  OneConnection t;
  for (const char* key : {"a", "b", "c"}) {
    CAPTURE(key);
    const Message message{.business_key = key};
    std::int64_t first = 0;
    CHECK_THROWS((void)t.consumer.consume(message, [&](Lease& lease) {
      first = lease.fence();
      throw std::runtime_error("it failed");
    }));
    const auto handler = [&](Lease& lease) { CHECK(lease.fence() > first); };
    CHECK(first > std::int64_t{1} << 31);
    CHECK(t.consumer.consume(message, handler).outcome == consumed);
    CHECK(t.db.number(std::string("select attempts from txinbox_consumed_message where business_key = '") + key +
                      "'") == 2);
  }
  CHECK(t.unfinished() == 0);
}

}  // namespace
}  // namespace txinbox::test
