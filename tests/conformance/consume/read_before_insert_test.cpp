// After some duplicates in a row, a pool's connection reads a key before it inserts the claim. The read must see only
// committed rows, and must not use an old snapshot.

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

const Message duplicate{.business_key = "duplicate"};
const Message key{.business_key = "key"};

TEST_CASE("a key whose handler is still running is not reported as consumed, even in READ UNCOMMITTED" *
          doctest::skip(on_sqlite3())) {  // SQLite's readers never see uncommitted rows
  EffectDatabase db;
  Pool pool = db.pool(PoolOptions{.connections = 2, .on_connect = [](soci::session& sql) {
                                    sql << (on_mysql() ? "set session transaction isolation level read uncommitted"
                                                       : "set default_transaction_isolation = 'read uncommitted'");
                                  }});
  TxConsumer consumer(pool, "svc");
  (void)consumer.consume(duplicate, add_effect);
  std::promise<void> inside;
  std::promise<void> release;
  auto first = std::async(std::launch::async, [&] {
    try {
      (void)consumer.consume(key, [&](soci::session& sql, Delivery& d) {
        add_effect(sql, d);
        inside.set_value();
        release.get_future().wait();
        throw std::runtime_error("rolled back");
      });
    } catch (const std::runtime_error&) {  // NOLINT(bugprone-empty-catch)
    }
  });
  inside.get_future().wait();
  for (int i = 0; i < 4; ++i) (void)consumer.consume(duplicate, add_effect);
  auto second = std::async(std::launch::async, [&] { return consumer.consume(key, add_effect).outcome; });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  release.set_value();
  first.wait();
  CHECK(second.get() == Outcome::consumed);
  CHECK(db.effects_of("key") == 1);
}

/// A statement with unread rows. On SQLite it keeps a snapshot open.
struct Unread {
  explicit Unread(soci::session& sql)
      : statement((sql.prepare << "select id from effect union all select 'more'", soci::into(id))) {}
  std::string id;
  soci::statement statement;
};

TEST_CASE("a statement with unread rows does not hide the state of a row") {
  EffectDatabase db;
  db.run("insert into effect values ('seed')");
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const Handler leaves_rows = [](soci::session& sql, Delivery& d) {
    d.per_connection<Unread>(sql).statement.execute(true);
    add_effect(sql, d);
  };
  (void)consumer.consume(key, leaves_rows);
  for (int i = 0; i < 4; ++i) (void)consumer.consume(key, leaves_rows);
  db.run("delete from txinbox_consumed_message");
  CHECK(consumer.consume(key, leaves_rows).outcome == Outcome::consumed);
  CHECK(db.effects_of("key") == 2);
}

}  // namespace
}  // namespace txinbox::test
