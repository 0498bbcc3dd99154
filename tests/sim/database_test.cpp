// The simulated database: its locks, its statements, and what each personality does.

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/error_class.hpp"
#include "backend/failure.hpp"
#include "sim/database/dialect.hpp"
#include "sim/database/literals.hpp"
#include "sim/database/server.hpp"
#include "sim/simulated_server.hpp"
#include "sim/threads.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using sim::Personality;
using sim::Server;
using sim::Threads;

TEST_CASE("simulated database: only what was committed is seen by others") {
  for_each_server([](Server& server) {
    const auto session = connect(server);
    session->execute("BEGIN");
    session->execute(insert("a"));
    CHECK(count(server) == 0);
    session->execute("SAVEPOINT s");
    session->execute(insert("b"));
    session->execute("ROLLBACK TO s");
    session->execute("COMMIT");
    CHECK(count(server) == 1);
    session->execute("BEGIN");
    session->execute("DELETE FROM txinbox_consumed_message");
    CHECK(count(server) == 1);
    session->execute("ROLLBACK");
    CHECK(count(server) == 1);
    session->execute("UPDATE txinbox_consumed_message SET state = 'torn' WHERE business_key = 'a'");
    CHECK(server.query("SELECT state FROM txinbox_consumed_message").at(0).at(0).bytes == "torn");
  });
}

TEST_CASE("simulated database: rows have the order of their numbers, as each transaction sees them") {
  for_each_server([](Server& server) {
    const auto session = connect(server);
    const auto add = [&](std::string_view id) {
      session->execute(fmt::format(
          "INSERT OR REPLACE INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part) "
          "VALUES ('{}', 't', '', '', x'00', 0)",
          id));
    };
    const std::string first_two = "SELECT id FROM txinbox_outbox_message WHERE seq > 0 ORDER BY seq LIMIT 2";
    const auto ids = [](const std::vector<sim::Values>& rows) {
      std::string text;
      for (const sim::Values& row : rows) text += row.at(0).bytes;
      return text;
    };
    add("a");
    add("b");
    add("c");
    session->execute("BEGIN");
    add("a");  // it has the last number now
    std::vector<sim::Values> rows;
    (void)session->run(first_two, {}, &rows);
    CHECK(ids(rows) == "bc");
    CHECK(ids(server.query(first_two)) == "ab");
    session->execute("COMMIT");
    CHECK(ids(server.query(first_two)) == "bc");
  });
}

TEST_CASE("simulated database: an insert of a key waits for the transaction that has inserted it") {
  for (const std::string end : {"COMMIT", "ROLLBACK"}) {
    CAPTURE(end);
    for_each_server([&](Server& server) {
      const auto first = connect(server);
      const auto second = connect(server);
      first->execute("BEGIN");
      first->execute(insert("a"));
      std::optional<std::string> error;
      const std::jthread waits([&] { error = error_of(*second, insert("a")); });
      Threads::instance()->sleep_for(500ms);
      CHECK_FALSE(error);
      first->execute(end);
      Threads::instance()->sleep_for(500ms);
      REQUIRE(error);
      CHECK(*error == (end == "COMMIT" ? server.personality().error.duplicate : ""));
      CHECK(count(server) == 1);
    });
  }
}

TEST_CASE("simulated database: the wait for a lock ends after a second") {
  for_each_server([](Server& server) {
    const auto first = connect(server);
    const auto second = connect(server);
    first->execute("BEGIN");
    first->execute(insert("a"));
    CHECK(error_of(*second, insert("a")) == server.personality().error.lock_timeout);
    first->execute("COMMIT");
    CHECK(error_of(*second, insert("b")) == "");
  });
}

TEST_CASE("simulated database: with one writer, BEGIN waits for the transaction that is open") {
  for_each_server([](Server& server) {
    const auto first = connect(server);
    const auto second = connect(server);
    first->execute("BEGIN");
    const bool has_one_writer = server.personality().has_one_writer;
    CHECK(error_of(*second, "BEGIN") == (has_one_writer ? server.personality().error.lock_timeout : ""));
    first->execute("COMMIT");
    CHECK(error_of(*second, "BEGIN") == "");
  });
}

TEST_CASE("simulated database: of two transactions that wait for each other, one gets a deadlock") {
  for_each_server([](Server& server) {
    if (server.personality().has_one_writer) return;  // the second one cannot begin
    const auto first = connect(server);
    const auto second = connect(server);
    for (auto* const each : {first.get(), second.get()}) each->execute("BEGIN");
    first->execute(insert("a"));
    second->execute(insert("b"));
    std::string error;
    std::jthread waits([&] { error = error_of(*first, insert("b")); });
    Threads::instance()->sleep_for(100ms);
    CHECK(error_of(*second, insert("a")) == server.personality().error.deadlock);
    if (!server.personality().deadlock_rolls_back) second->execute("ROLLBACK");
    waits.join();
    CHECK(error == "");
    first->execute("COMMIT");
    CHECK(count(server) == 2);
  });
}

TEST_CASE("simulated database: a failed statement changes nothing, and PostgreSQL accepts no other one then") {
  for_each_server([](Server& server) {
    const auto session = connect(server);
    session->execute(insert("a"));
    session->execute("BEGIN");
    session->execute(insert("b"));
    CHECK(error_of(*session, insert("a")) == server.personality().error.duplicate);
    const bool aborts = server.personality().error_aborts_transaction;
    CHECK(error_of(*session, insert("c")) == (aborts ? server.personality().error.aborted : ""));
    session->execute("COMMIT");
    CHECK(count(server) == (aborts ? 1 : 3));
  });
}

TEST_CASE("simulated database: the library knows the codes of its errors") {
  using backend::ErrorClass;
  for (const Personality& personality : sim::personalities) {
    CAPTURE(personality.name);
    const auto class_of = [&](std::string_view code) {
      return detail::Failure(std::make_exception_ptr(sim::SimulatedError(personality, code, "error"))).error_class();
    };
    const bool is_sqlite3 = personality.codes == "sqlite3";
    const auto& error = personality.error;
    CHECK(class_of(error.duplicate) == ErrorClass::duplicate_key);
    CHECK(class_of(error.deadlock) == (is_sqlite3 ? ErrorClass::lock_timeout : ErrorClass::deadlock));
    CHECK(class_of(error.lock_timeout) == ErrorClass::lock_timeout);
    CHECK(class_of(error.full) == ErrorClass::environment);
    if (!is_sqlite3) {
      CHECK(class_of(error.lost) == ErrorClass::connection_lost);
      CHECK(class_of(error.cannot_connect) == ErrorClass::connection_lost);
      CHECK(class_of(error.conflict) == ErrorClass::serialization_failure);
      CHECK(class_of(error.read_only) == ErrorClass::read_only);
    }
    // SQLite's code says only that a hook has refused the commit. The session knows that it was the guard's.
    if (personality.codes == "postgresql") CHECK(class_of(error.refused) == ErrorClass::commit_refused);
  }
}

TEST_CASE("simulated database: literals become parameters") {
  using sim::Value;
  const auto result =
      sim::with_parameters(R"(SELECT "a'1".x2, 'it''s', X'00ff', 12, 1.5, -7 FROM t1 WHERE x = '' LIMIT 3)");
  CHECK(result.sql == R"(SELECT "a'1".x2, ?, ?, ?, ?, -? FROM t1 WHERE x = ? LIMIT ?)");
  const auto text = [](std::string bytes) { return Value{.type = Value::Type::text, .bytes = std::move(bytes)}; };
  const auto number = [](std::int64_t integer) { return Value{.type = Value::Type::integer, .integer = integer}; };
  const Value blob{.type = Value::Type::blob, .bytes = std::string("\0\xFF", 2)};
  const Value real{.type = Value::Type::real, .real = 1.5};
  CHECK(result.parameters == sim::Values{text("it's"), blob, number(12), real, number(7), text(""), number(3)});
  CHECK(sim::with_parameters("COMMIT").parameters.empty());
}

TEST_CASE("simulated database: a comparison finds the rows between its bounds") {
  for_each_server([](Server& server) {
    const auto session = connect(server);
    for (const int number : {-300, -2, -1, 0, 1, 2, 255, 256, 70'000}) {
      session->execute(fmt::format("INSERT INTO effect (number, business_key) VALUES ({}, 'k{}')", number, number));
    }
    const auto numbers = [&](std::string_view condition) {
      std::vector<std::int64_t> found;
      for (const auto& row :
           server.query(fmt::format("SELECT number FROM effect WHERE {} ORDER BY number", condition))) {
        found.push_back(row.at(0).integer);
      }
      return found;
    };
    CHECK(numbers("number > 2") == std::vector<std::int64_t>{255, 256, 70'000});
    CHECK(numbers("number >= -2 AND number < 2") == std::vector<std::int64_t>{-2, -1, 0, 1});
    CHECK(numbers("number <= -1 AND number > -300") == std::vector<std::int64_t>{-2, -1});
    CHECK(numbers("number > 2 AND number > 255") == std::vector<std::int64_t>{256, 70'000});
    CHECK(numbers("business_key >= 'k2' AND business_key <= 'k255'") == std::vector<std::int64_t>{2, 255});
    for (const std::string_view key : {"", "a", "aa", "b"}) session->execute(insert(key));
    const auto keys = [&](std::string_view condition) {
      return server
          .query(fmt::format("SELECT business_key FROM txinbox_consumed_message WHERE consumer = {}", condition))
          .size();
    };
    CHECK(keys("'svc' AND business_key > 'a'") == 2);
    CHECK(keys("'svc' AND business_key >= 'a' AND business_key < 'b'") == 2);
    CHECK(keys("'sv' AND business_key > ''") == 0);
  });
}

TEST_CASE("simulated database: PostgreSQL shows which transactions may have inserted rows into a table") {
  for_each_server([](Server& server) {
    if (!server.personality().shows_writers) return;
    const auto dialect = sim::make_sim_dialect(server.personality());
    const auto writers = [&] { return server.query(dialect->open_writers("main.\"txinbox_consumed_message\"")); };
    REQUIRE(writers().size() == 1);
    CHECK(writers().at(0).at(1).is_null());
    const auto first = connect(server);
    first->execute("BEGIN");
    CHECK(writers().at(0).at(1).is_null());
    first->execute(insert("a"));
    const auto second = connect(server);
    second->execute("BEGIN");
    second->execute(insert("b"));
    REQUIRE(writers().size() == 2);
    CHECK(writers().at(0).at(1) != writers().at(1).at(1));
    first->execute("ROLLBACK");
    second->execute("COMMIT");
    REQUIRE(writers().size() == 1);
    CHECK(writers().at(0).at(1).is_null());
    const sim::Value before = writers().at(0).at(0);
    server.restart(Threads::instance()->now());
    CHECK(writers().at(0).at(0) != before);
  });
}

TEST_CASE("simulated database: BEGIN in a transaction fails, changes nothing, or commits the transaction") {
  for_each_server([](Server& server) {
    const Personality& personality = server.personality();
    const bool commits = personality.nested_begin == sim::NestedBegin::commits;
    const auto session = connect(server);
    session->execute("BEGIN");
    session->execute(insert("a"));
    CHECK(error_of(*session, "BEGIN") == personality.error.nested);
    CHECK(session->has_transaction());
    CHECK(count(server) == (commits ? 1 : 0));
    CHECK(session->foreign_commits == (commits ? 1 : 0));
    session->execute("ROLLBACK");
    CHECK(count(server) == (commits ? 1 : 0));
  });
}

TEST_CASE("simulated database: after the end of its transaction, nothing that a handler changes is committed") {
  for_each_server([](Server& server) {
    const Personality& personality = server.personality();
    const auto session = connect(server);
    session->is_in_handler = true;
    CHECK(error_of(*session, insert("a")) == personality.error.late);
    CHECK(session->has_transaction() == personality.begins_by_itself);
    CHECK(count(server) == 0);
    session->end();
    CHECK(count(server) == 0);
  });
}

TEST_CASE("simulated database: after a deadlock, only MariaDB and MySQL have rolled the transaction back") {
  for_each_server([](Server& server) {
    const Personality& personality = server.personality();
    const auto session = connect(server);
    session->execute("BEGIN");
    session->execute(insert("a"));
    CHECK_THROWS_AS(session->run_into_deadlock(), sim::SimulatedError);
    CHECK(session->has_transaction() != personality.deadlock_rolls_back);
    session->execute("COMMIT");
    CHECK(count(server) == (personality.name == "sqlite3" ? 1 : 0));
  });
}

}  // namespace
}  // namespace txinbox::test
