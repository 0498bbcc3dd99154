// How often a delivery waits for the server. The test prints the table of docs/reference/round-trips.md.

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "backend/sqlite3/native.hpp"
#include "base/token.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/capabilities.hpp"
#include "support/effects.hpp"
#include "support/proxy.hpp"
#include "support/source_files.hpp"
#include "support/sql_time.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

const auto nothing = [](soci::session&, Delivery&) {};
const auto storing = [](soci::session&, Delivery& d) { d.store(std::string(1000, 'r')); };
const auto throwing = [](soci::session&, Delivery&) { throw std::runtime_error("no"); };

/// A delivery whose round trips are counted, and the deliveries before it that prepare the connection.
struct Counted {
  std::string name;
  std::function<void(TxConsumer&)> before;
  std::function<void(TxConsumer&)> one;
};

void consume(TxConsumer& consumer, const std::string& key, const Handler& handler = nothing) {
  (void)consumer.consume({.business_key = key}, handler);
}

void consume_hundred(TxConsumer& consumer, const std::string& prefix, Outcome expected) {
  std::vector<Message> messages;
  for (int i = 0; i < 100; ++i) messages.push_back({.business_key = prefix + std::to_string(i)});
  for (const Result& each : consumer.consume_batch(messages, nothing)) CHECK(each.outcome == expected);
}

/// Ends a sequence of duplicates. During one, keys are read before they are inserted.
void new_key(TxConsumer& consumer) {
  static int keys = 0;
  consume(consumer, "other-" + std::to_string(++keys));
}

void three_duplicates(TxConsumer& consumer) {
  new_key(consumer);
  consume(consumer, "old");
  for (int i = 0; i < 3; ++i) consume(consumer, "old");
}

/// The first batch of a session also finds out whether the server is a node of a cluster. The second batch of the same
/// size also prepares its statements.
void new_batch(TxConsumer& consumer) {
  for (const char* prefix : {"first-batch-", "second-batch-"}) consume_hundred(consumer, prefix, Outcome::consumed);
}

std::vector<Counted> deliveries() {
  return {
      {"new key", new_key, [](TxConsumer& c) { consume(c, "new"); }},
      {"new key whose handler stores a result", new_key, [](TxConsumer& c) { consume(c, "storing", storing); }},
      {"new key after three duplicates", three_duplicates, [](TxConsumer& c) { consume(c, "after"); }},
      {"duplicate", new_key, [](TxConsumer& c) { consume(c, "old"); }},
      {"duplicate after three others", three_duplicates, [](TxConsumer& c) { consume(c, "old"); }},
      {"new key whose handler throws", new_key, [](TxConsumer& c) { CHECK_THROWS(consume(c, "bad", throwing)); }},
      {"batch of 100 new keys", new_batch, [](TxConsumer& c) { consume_hundred(c, "batch", Outcome::consumed); }},
      {"batch of 100 duplicates", new_key,
       [](TxConsumer& c) { consume_hundred(c, "batch", Outcome::already_consumed); }},
  };
}

std::string server_name() {
  if (on_postgresql()) return "PostgreSQL";
  if (on_galera()) return "MariaDB with Galera";
  return on_mariadb() ? "MariaDB" : "MySQL";
}

/// The part of docs/reference/round-trips.md about the server under test.
std::string documented() {
  const std::string text = source_text("docs/reference/round-trips.md");
  const std::string heading = "## " + server_name() + "\n";
  const std::size_t from = text.find(heading);
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find("\n## ", from) - from);
}

TEST_CASE("each delivery takes as many round trips as the docs say" * doctest::skip(!has_server())) {
  EffectDatabase db;
  const std::string docs = documented();
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  const auto sql = TestDatabase::session_through(proxy.url());
  TxConsumer pooled(pool, "pooled");
  TxConsumer own(*sql, "own");
  for (TxConsumer* each : {&pooled, &own}) {
    consume(*each, "old");
    consume(*each, "old");
  }
  const auto count = [&](const Counted& each, TxConsumer& consumer) {
    each.before(consumer);
    const int before = proxy.round_trips();
    each.one(consumer);
    return proxy.round_trips() - before;
  };
  std::string table = "\n| one | in a pool | on a session |\n|---|---|---|\n";
  for (const Counted& each : deliveries()) {
    const int in_pool = count(each, pooled);
    const int on_session = count(each, own);
    const std::string row = fmt::format("| {} | {} | {} |\n", each.name, in_pool, on_session);
    CHECK_MESSAGE(docs.find(row) != std::string::npos, "docs/reference/round-trips.md lacks the row: ", row);
    table += row;
  }
  fmt::print("{}", table);
}

TEST_CASE("each delivery under a lease takes as many round trips as the docs say" * doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  LeaseConsumer consumer(pool, "svc");
  int running = 0;
  const auto count = [&](const std::string& key) {
    const int before = proxy.round_trips();
    (void)consumer.consume({.business_key = key}, [&](Lease& lease) {
      running = proxy.round_trips();
      if (key.starts_with("renewed")) lease.renew();
    });
    return proxy.round_trips() - before;
  };
  for (const char* key : {"old", "old", "renewed before"}) count(key);  // they prepare the statements
  const int before = proxy.round_trips();
  const int whole = count("new");
  const int taken = running - before;
  const std::string row = fmt::format("| {} | {} | {} | {} | {} |\n", server_name(), taken, whole - taken,
                                      count("renewed") - whole, count("old"));
  CHECK_MESSAGE(source_text("docs/guides/leases.md").find(row) != std::string::npos,
                "docs/guides/leases.md lacks the row: ", row);
}

TEST_CASE("a duplicate that is much older than all before takes one more round trip, and the first one takes two more" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  const auto sql = TestDatabase::session_through(proxy.url());
  TxConsumer pooled(pool, "pooled");
  TxConsumer own(*sql, "own");
  for (TxConsumer* consumer : {&pooled, &own}) {
    consume(*consumer, "k");
    const auto cost = [&] {
      new_key(*consumer);
      const int before = proxy.round_trips();
      consume(*consumer, "k");
      return proxy.round_trips() - before;
    };
    const auto cost_at = [&](std::chrono::hours age) {
      make_older(db, "business_key = 'k'", age);
      return cost();
    };
    cost();
    const int usual = cost();
    CHECK(cost_at(std::chrono::hours(1)) == usual + 2);  // the table has no row of this consumer yet
    CHECK(cost() == usual);
    CHECK(cost_at(std::chrono::hours(2)) == usual + 1);
    CHECK(cost() == usual);
  }
}

TEST_CASE("settings that a handler changes and roles that a user has take one more round trip each" *
          doctest::skip(!has_server())) {
  EffectDatabase db;
  const User user(db);
  grant_service(user, db);
  const auto cost = [&](const Handler& handler) {
    Proxy proxy(user.url());
    Pool pool = open_pool(proxy.url(), {.connections = 1});
    TxConsumer consumer(pool, "svc");
    new_key(consumer);
    const int before = proxy.round_trips();
    consume(consumer, "new", handler);
    db.run("delete from txinbox_consumed_message where business_key = 'new'");
    return proxy.round_trips() - before;
  };
  const int usual = cost(nothing);
  const auto changing = [](soci::session& sql, Delivery&) {
    sql << (on_mysql() ? "set time_zone = '+02:00'" : "set timezone to 'Asia/Tokyo'");
  };
  // On MySQL the settings are restored in any case, because this user may not execute the procedures.
  CHECK(cost(changing) == usual + 1 + (on_postgresql() || on_mariadb() ? 1 : 0) + (on_mysql() ? 1 : 0));
  if (!on_mysql()) return;
  const std::string role = "role_" + detail::Token::random().hex().substr(0, 12);
  db.run("create role " + role);
  user.grant(role);
  CHECK(cost(nothing) == usual + 1);
  db.run("drop role " + role);
}

TEST_CASE("a duplicate that the cache of recent keys answers needs no round trip" * doctest::skip(!has_server())) {
  const EffectDatabase db;
  Proxy proxy(db.url());
  Pool pool = open_pool(proxy.url(), {.connections = 1});
  TxConsumer consumer(pool, "svc", {.recent_keys = {.capacity = 1000, .max_age = std::chrono::hours(1)}});
  consume(consumer, "new");
  const int before = proxy.round_trips();
  for (int i = 0; i < 3; ++i) consume(consumer, "new");
  const Message message{.business_key = "new"};
  CHECK(consumer.consume_batch({&message, 1}, nothing).front().outcome == Outcome::already_consumed);
  CHECK(proxy.round_trips() == before);
}

/// SQLite calls it for each part of a statement that it prepares.
int count_preparation(void* count, int, const char*, const char*, const char*, const char*) {
  ++*static_cast<int*>(count);
  return SQLITE_OK;
}

/// Only a delivery that records a failure prepares statements.
void check_preparations(TxConsumer& consumer, int& prepared) {
  for (const Counted& each : deliveries()) {
    CAPTURE(each.name);
    each.before(consumer);
    prepared = 0;
    each.one(consumer);
    CHECK((prepared == 0) == (each.name != "new key whose handler throws"));
  }
}

TEST_CASE("on SQLite a pool's connection prepares each statement once, except those that record a failure" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  int prepared = 0;
  Pool pool = db.pool(PoolOptions{.connections = 1, .on_connect = [&](soci::session& sql) {
                                    sqlite3_set_authorizer(backend::sqlite3_native(*backend::connection_of(sql)),
                                                           count_preparation, &prepared);
                                  }});
  TxConsumer consumer(pool, "svc");
  consume(consumer, "old", storing);
  consume(consumer, "old");
  CHECK_THROWS(consume(consumer, "bad", throwing));
  CHECK(prepared > 0);  // SQLite calls the function
  check_preparations(consumer, prepared);
}

/// The same for a caller's session. It does not count pragmas, which SQLite prepares for each run, nor what is prepared
/// each time: BEGIN, and the savepoint of one message of a batch.
int count_kept_preparation(void* count, int action, const char*, const char* name, const char*, const char*) {
  const bool is_step = name != nullptr && std::string_view(name).find("_step") != std::string_view::npos;
  const bool is_kept = action != SQLITE_PRAGMA && action != SQLITE_TRANSACTION && !is_step;
  if (is_kept) ++*static_cast<int*>(count);
  return SQLITE_OK;
}

TEST_CASE("on SQLite a session of the caller's also prepares each statement once" * doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  int prepared = 0;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  consume(consumer, "old", storing);
  consume(consumer, "old");
  CHECK_THROWS(consume(consumer, "bad", throwing));
  sqlite3_set_authorizer(backend::sqlite3_native(*backend::connection_of(*sql)), count_kept_preparation, &prepared);
  consume(consumer, "first");  // SQLite prepares everything again after a change of the function
  consume(consumer, "old");
  CHECK(prepared > 0);
  check_preparations(consumer, prepared);
}

}  // namespace
}  // namespace txinbox::test
