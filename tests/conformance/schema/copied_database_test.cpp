// A database that was made from another one: by a restored dump, and by PostgreSQL's logical replication. MariaDB's and
// MySQL's programs for dumps are not among the packages of the tests.

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "base/url.hpp"
#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/recording_publisher.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

/// Each byte that a dump could change.
const std::string all_bytes = [] {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}();

void run_program(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);  // NOLINT(cert-env33-c)
}

/// The URL of a PostgreSQL server without the password, which the programs get from the environment.
std::string url_without_password(const TestDatabase& db) {
  const detail::Url url = detail::parse_url(db.url());
  ::setenv("PGPASSWORD", url.password.c_str(), 1);
  return "postgresql://" + url.user + "@" + url.host + ":" + url.port + "/" + url.path;
}

/// Dumps the database, removes it, and restores it from the dump. Nobody may be connected.
void dump_and_restore(const TestDatabase& db) {
  const auto dump = std::filesystem::temp_directory_path() / ("txinbox-dump-" + std::to_string(::getpid()));
  if (on_sqlite3()) {
    db.disconnect();
    const std::string file = db.url().substr(std::string("sqlite://").size());
    run_program("sqlite3 '" + file + "' .dump > '" + dump.string() + "'");
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file + suffix);
    run_program("sqlite3 '" + file + "' < '" + dump.string() + "' > /dev/null");
  } else {
    const std::string schema = schema_of(db);
    const std::string server = url_without_password(db);
    run_program("pg_dump --schema=" + schema + " '" + server + "' > '" + dump.string() + "'");
    db.run("set client_min_messages = warning; drop schema " + schema + " cascade");
    run_program("psql -q -v ON_ERROR_STOP=1 -f '" + dump.string() + "' '" + server + "' > /dev/null");
  }
  std::filesystem::remove(dump);
}

void send(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  Outbox::add(sql, {.topic = "orders", .key = "k", .payload = delivery.message().business_key + all_bytes});
  delivery.store(all_bytes);
}

std::set<std::string> ids_of(const std::vector<OutboxMessageInfo>& messages) {
  std::set<std::string> ids;
  for (const OutboxMessageInfo& each : messages) ids.insert(each.id);
  return ids;
}

TEST_CASE("a restored dump continues where the database was dumped" * doctest::skip(on_mysql())) {
  const EffectDatabase db;
  std::set<std::string> ids;
  {
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(consumer.consume({.business_key = "1", .content = "a"}, send).outcome == Outcome::consumed);
    CHECK(consumer.consume({.business_key = "2"}, send).outcome == Outcome::consumed);
    CHECK_THROWS((void)consumer.consume({.business_key = "3"},
                                        [](soci::session&, Delivery&) { throw std::runtime_error("fails"); }));
    CHECK(consumer.consume({.business_key = "1", .content = "b"}, send).outcome == Outcome::conflict);
    ids = ids_of(list_outbox(pool.acquire()));
    CHECK(ids.size() == 2);
  }
  dump_and_restore(db);

  Pool pool = db.pool(2);
  verify(pool.acquire());
  for (const Finding& each : diagnose(pool.acquire())) CHECK_MESSAGE(each.severity != Severity::error, each.found);
  TxConsumer consumer(pool, "svc");
  const Result again = consumer.consume({.business_key = "1", .content = "a"}, send);
  CHECK(again.outcome == Outcome::already_consumed);
  CHECK(again.stored == all_bytes);
  CHECK(consumer.consume({.business_key = "1", .content = "c"}, send).outcome == Outcome::conflict);
  CHECK(list_failed(pool.acquire()).size() == 1);
  CHECK(db.number("select count(*) from txinbox_conflicting_message") == 2);
  // The guard was restored, too.
  CHECK_THROWS_AS((void)consumer.consume({.business_key = "4"},
                                         [](soci::session& sql, Delivery& delivery) {
                                           add_effect(sql, delivery);
                                           sql.commit();
                                         }),
                  Error);
  CHECK(db.effects() == 2);

  // A message that runs again has the id of before. A new one has a greater number than those of before.
  CHECK(ids_of(list_outbox(pool.acquire())) == ids);
  CHECK(forget(pool.acquire(), "svc", "2"));
  CHECK(consumer.consume({.business_key = "2"}, send).outcome == Outcome::consumed);
  CHECK(ids_of(list_outbox(pool.acquire())) == ids);
  CHECK(consumer.consume({.business_key = "5"}, send).outcome == Outcome::consumed);
  RecordingPublisher broker;
  const OutboxRelay relay(pool, broker.publisher(), {.poll = std::chrono::milliseconds(5)});
  CHECK(broker.payloads(3) == std::vector<std::string>{"1" + all_bytes, "2" + all_bytes, "5" + all_bytes});
  CHECK(outbox_becomes_empty(db));
}

/// Another database of the same server. It gets the rows of a schema by logical replication.
class Subscriber {
 public:
  explicit Subscriber(const TestDatabase& source) : source_(source), name_(schema_of(source)) {
    source_.run("create database " + name_);
    const detail::Url url = detail::parse_url(source_.url());
    url_ = source_.url();
    url_.replace(url_.find("/" + url.path + "?"), url.path.size() + 1, "/" + name_);
    run("create schema " + name_);
    migrate(*session());
    source_.run("create publication " + name_ + " for table txinbox_consumed_message");
    // A database of the same server needs a slot that exists already.
    source_.run("select pg_create_logical_replication_slot('" + name_ + "', 'pgoutput')");
    run("create subscription " + name_ + " connection 'host=" + url.host + " port=" + url.port + " user=" + url.user +
        " password=" + url.password + " dbname=" + url.path + "' publication " + name_ + " with (create_slot = false)");
  }
  ~Subscriber() {
    for (const std::string& sql :
         {"alter subscription " + name_ + " disable", "alter subscription " + name_ + " set (slot_name = none)",
          "drop subscription " + name_}) {
      try_run([&] { run(sql); });
    }
    // The server ends the process that sends the changes after a short time.
    (void)eventually([&] { return try_run([&] { source_.run("select pg_drop_replication_slot('" + name_ + "')"); }); });
    try_run([&] { source_.run("drop publication " + name_); });
    try_run([&] { source_.run("drop database " + name_ + " with (force)"); });
  }
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  const std::string& url() const { return url_; }
  std::unique_ptr<soci::session> session() const { return TestDatabase::session_through(url_); }
  void run(const std::string& sql) const { *session() << sql; }
  long long number(const std::string& sql) const {
    long long value = 0;
    *session() << sql, soci::into(value);
    return value;
  }

 private:
  template <class Run>
  static bool try_run(const Run& run) noexcept {
    try {
      run();
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  const TestDatabase& source_;
  const std::string name_;
  std::string url_;
};

TEST_CASE("PostgreSQL's logical replication takes claims to another database, which finds the duplicates" *
          doctest::skip(!on_postgresql())) {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  const auto store = [](soci::session&, Delivery& delivery) { delivery.store(all_bytes); };
  CHECK(consumer.consume({.business_key = "before"}, store).outcome == Outcome::consumed);
  const Subscriber subscriber(db);
  CHECK(consumer.consume({.business_key = "after"}, store).outcome == Outcome::consumed);
  LeaseConsumer leases(pool, "leases");
  CHECK(leases.consume({.business_key = "lease"}, [](Lease&) {}).outcome == Outcome::consumed);
  CHECK(eventually([&] {
    return subscriber.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == 3;
  }));

  Pool there = open_pool(subscriber.url(), {.connections = 1});
  TxConsumer other(there, "svc");
  for (const char* key : {"before", "after"}) {
    const Result result = other.consume({.business_key = key}, store);
    CHECK(result.outcome == Outcome::already_consumed);
    CHECK(result.stored == all_bytes);
  }
  CHECK(LeaseConsumer(there, "leases").consume({.business_key = "lease"}, [](Lease&) {}).outcome ==
        Outcome::already_consumed);
  CHECK(other.consume({.business_key = "new"}, store).outcome == Outcome::consumed);
}

}  // namespace
}  // namespace txinbox::test
