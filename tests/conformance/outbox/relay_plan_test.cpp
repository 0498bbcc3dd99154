// How a server looks for earlier messages of a key: with the index on the key, even if the statistics of the table are
// old, and once for each key of a batch.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>

#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "backend/table_check.hpp"
#include "pool/inbox_session.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/outcomes.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "tables/outbox_message_table.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("the server finds earlier messages of a key with the index on the key" * doctest::skip(!on_mysql())) {
  const TestDatabase db;
  db.run("alter table txinbox_outbox_message stats_auto_recalc = 0");
  for (int key = 0; key < 20; ++key) add(db, "k" + std::to_string(key), std::vector<std::string>(200, "x"));
  const auto sql = db.session();
  const std::string session_status =
      on_mariadb() ? "information_schema.session_status" : "performance_schema.session_status";
  const auto dialect = backend::database_of(*sql).dialect("");
  const std::set<int> parts = {1, 2, 3};
  // The numbers of the rows have gaps on a node of a Galera cluster.
  const std::int64_t last_of_fifth_key =
      db.number("select max(seq) from txinbox_outbox_message where aggregateid = 'k4'");
  const std::string select = detail::select_outbox_rows(*dialect, backend::outbox_message_table,
                                                        {.parts = parts, .after = last_of_fifth_key, .limit = 500});
  const auto rows_read = [&] {
    return std::stoll(backend::query_text(
        *backend::connection_of(*sql),
        "select sum(variable_value) from " + session_status + " where variable_name like 'Handler_read%'"));
  };
  const long long before = rows_read();
  (void)backend::query(*backend::connection_of(*sql), select, 9);
  // About 8,000: the rows of the batch, and the tables in which the server keeps them in between.
  CHECK(rows_read() - before < 10'000);
}

// Whether a server chooses a worse index depends on its statistics. So this test takes the right index away: then no
// other index may serve.
TEST_CASE("only the index on the key can find earlier messages of a key" * doctest::skip(on_sqlite3())) {
  const TestDatabase db;
  const auto sql = db.session();
  const auto connection = backend::connection_of(*sql);
  const std::set<int> parts = {1};
  const std::string select =
      detail::select_outbox_rows(*backend::database_of(*sql).dialect(""), backend::outbox_message_table,
                                 {.parts = parts, .after = 1'000, .limit = 500});
  if (on_mysql()) {
    db.run("alter table txinbox_outbox_message drop index txinbox_outbox_message_aggregateid");
    CHECK(class_of_error([&] { (void)backend::query(*connection, select, 9); }) == "mysql 1176");  // no such index
    return;
  }
  db.run("drop index txinbox_outbox_message_aggregateid");
  *sql << "set enable_seqscan = off";  // so it would take any other index
  const auto plan = backend::query(*connection, "explain " + select, 1);
  CHECK(plan.size() > 5);
  for (const auto& line : plan) {  // earlier messages have a number up to 1000
    const bool is_condition = line.at(0)->find("Index Cond") != std::string::npos;
    CHECK_MESSAGE(!(is_condition && line.at(0)->find("<= 1000") != std::string::npos), *line.at(0));
  }
}

/// An outbox whose rows were removed while another transaction has a snapshot. So the server cannot clean up behind
/// them, and whoever searches an index for rows like them passes them.
class HeldOutbox {
 public:
  HeldOutbox(int keys, int rows) {
    insert(keys, rows);
    *snapshot_ << "begin isolation level repeatable read";
    long long seen = 0;
    *snapshot_ << "select count(*) from txinbox_outbox_message", soci::into(seen);
    REQUIRE(seen == rows);
    last_ = db.number("select max(seq) from txinbox_outbox_message");
    db.run("delete from txinbox_outbox_message");
  }

  /// Adds rows with the keys k0, k1 and so on. With `keys` 0, they have no key.
  void insert(int keys, int rows) const {
    const std::string key = keys == 0 ? "''" : fmt::format("'k' || n % {}", keys);
    db.run(
        fmt::format("insert into txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part) "
                    "select gen_random_uuid(), 't', {}, '', 'x', 0 from generate_series(1, {}) n",
                    key, rows));
  }

  /// The number of the last row that was removed.
  std::int64_t last() const { return last_; }

  /// The row that was added last.
  detail::OutboxRowKey newest() const {
    const std::string newest = " from txinbox_outbox_message order by seq desc limit 1";
    return {.seq = db.number("select seq" + newest), .id = db.text("select cast(id as text)" + newest)};
  }

  /// Returns how many pages of the table and its indexes this work reads.
  long long pages_of(const std::function<void(const detail::OutboxMessageTable&)>& work) const {
    const auto sql = db.session();
    const detail::InboxSession session(backend::connection_of(*sql));
    const auto pages = [&] {
      session->read("select pg_stat_force_next_flush()", 1);
      return std::stoll(*session
                             ->read("select heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit from "
                                    "pg_statio_user_tables where relname = 'txinbox_outbox_message'",
                                    1)
                             .at(0)
                             .at(0));
    };
    const long long before = pages();
    work(detail::OutboxMessageTable(*session));
    return pages() - before;
  }

  const std::set<int> parts = {0};
  const TestDatabase db;

 private:
  std::unique_ptr<soci::session> snapshot_ = db.session();
  std::int64_t last_ = 0;
};

TEST_CASE("a batch with many messages of a key passes the removed rows of the key once" *
          doctest::skip(!on_postgresql())) {
  const HeldOutbox outbox(1, 2'000);
  outbox.insert(1, 100);
  const auto read = [&](const detail::OutboxMessageTable& table) {
    CHECK(table.read({.parts = outbox.parts, .after = outbox.last(), .limit = 100}).size() == 100);
  };
  CHECK(outbox.pages_of(read) < 1'000);  // about 300; more than 4,000 if each message looks
}

// The planner then expects one row, and takes all ways for equally good.
TEST_CASE("a relay passes no removed rows of other keys, even if the statistics know no row" *
          doctest::skip(!on_postgresql())) {
  SUBCASE("when it looks for earlier messages of a key") {
    const HeldOutbox outbox(1'000, 20'000);
    outbox.db.run("analyze txinbox_outbox_message");
    outbox.insert(1'000, 100);
    const auto read = [&](const detail::OutboxMessageTable& table) {
      CHECK(table.read({.parts = outbox.parts, .after = outbox.last(), .limit = 100}).size() == 100);
    };
    CHECK(outbox.pages_of(read) < 5'000);
  }
  SUBCASE("when it reads the messages of some keys") {
    const HeldOutbox outbox(1'000, 20'000);
    outbox.db.run("analyze txinbox_outbox_message");
    outbox.insert(1'000, 100);
    const std::vector<std::string> keys = {"k1"};
    const auto read = [&](const detail::OutboxMessageTable& table) {
      CHECK(table.read({.parts = outbox.parts, .keys = keys, .limit = 100}).size() == 1);
    };
    CHECK(outbox.pages_of(read) < 50);
  }
  SUBCASE("when it reads or changes a message that has no key") {
    const HeldOutbox outbox(0, 20'000);
    outbox.db.run("analyze txinbox_outbox_message");
    outbox.insert(0, 10);
    const detail::OutboxRowKey row = outbox.newest();
    const auto read = [&](const detail::OutboxMessageTable& table) {
      const std::vector rows = {row.seq};
      CHECK(table.read({.parts = outbox.parts, .rows = rows, .limit = 100}).size() == 1);
    };
    CHECK(outbox.pages_of(read) < 20);
    CHECK(outbox.pages_of([&](const auto& table) {
      table.record_failures(std::vector{detail::FailedAttempt{row, 1, "no", true}});
    }) < 20);
    CHECK(outbox.pages_of([&](const auto& table) { CHECK(table.retry(row)); }) < 20);
    CHECK(outbox.pages_of([&](const auto& table) { table.remove(std::vector{row}); }) < 20);
  }
}

}  // namespace
}  // namespace txinbox::test
