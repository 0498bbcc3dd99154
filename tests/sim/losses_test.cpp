// The simulated database: what a crash, a failover and the end of a session lose.

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "sim/database/server.hpp"
#include "sim/simulated_server.hpp"
#include "sim/threads.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using sim::Server;
using sim::Threads;

std::int64_t last_number(Server& server) { return server.query("SELECT max(number) FROM effect").at(0).at(0).integer; }

TEST_CASE("simulated database: an administrator kills a session, and its transaction is rolled back") {
  for_each_server([](Server& server) {
    CHECK(server.kill_any_session() == "");
    const auto session = connect(server);
    session->execute("BEGIN");
    session->execute(insert("a"));
    CHECK(server.kill_any_session() == Threads::instance()->current_process().name());
    CHECK(error_of(*session, "COMMIT") == server.personality().error.lost);
    CHECK(server.kill_any_session() == "");
    CHECK(server.query("SELECT 1 FROM txinbox_consumed_message").empty());
  });
}

TEST_CASE("simulated database: a restart ends all transactions, and keeps what is durable") {
  for_each_server([](Server& server) {
    const auto session = connect(server);
    session->execute(insert("a"));
    session->execute("BEGIN");
    session->execute(insert("b"));
    server.restart(Threads::instance()->now() + 1s);
    CHECK(error_of(*session, "COMMIT") == server.personality().error.lost);
    CHECK_FALSE(server.is_up());
    Threads::instance()->sleep_for(2s);
    CHECK(server.is_up());
    CHECK(count(server) == 1);
    CHECK(error_of(*connect(server), insert("b")) == "");
  });
}

TEST_CASE("simulated database: a failover loses the last commits, and gives their numbers again") {
  for_each_server([](Server& server) {
    const auto effect = [&](std::string_view key) {
      connect(server)->execute(fmt::format("INSERT INTO effect (business_key) VALUES ('{}')", key));
    };
    effect("a");
    connect(server)->execute(insert("a"));
    Threads::instance()->sleep_for(1s);
    effect("b");
    connect(server)->execute("UPDATE txinbox_consumed_message SET state = 'torn'");
    connect(server)->execute("DELETE FROM effect WHERE business_key = 'a'");
    CHECK(last_number(server) == 2);
    CHECK(server.fail_over(Threads::instance()->now(), 500ms) == std::set<std::string>{"b"});
    CHECK(server.query("SELECT business_key FROM effect").size() == 1);
    CHECK(last_number(server) == 1);
    CHECK(server.query("SELECT state FROM txinbox_consumed_message").at(0).at(0).bytes == "consumed");
    CHECK(error_of(*connect(server), insert("a")) == server.personality().error.duplicate);
    effect("c");
    CHECK(last_number(server) == 2);
  });
}

TEST_CASE("simulated database: MariaDB shows a commit before it is durable, and a crash loses it then") {
  for_each_server([](Server& server) {
    server.faults.slowest = 500ms;
    const bool is_early = server.personality().shows_commits_early;
    const auto session = connect(server);
    std::string error = "none";
    const std::jthread commits([&] { error = error_of(*session, insert("a")); });
    while (count(server) == 0) Threads::instance()->sleep_for(1ms);
    CHECK(server.count_durable("txinbox_consumed_message", {{"consumer", "svc"}}) == (is_early ? 0 : 1));
    server.restart(Threads::instance()->now());
    CHECK(count(server) == (is_early ? 0 : 1));
    Threads::instance()->sleep_for(2s);
    CHECK(error == server.personality().error.lost);
  });
}

TEST_CASE("simulated database: a row that was durable stays as it was until its change is durable") {
  for_each_server([](Server& server) {
    const bool is_early = server.personality().shows_commits_early;
    const auto session = connect(server);
    session->execute(insert("a"));
    server.faults.slowest = 500ms;
    const std::jthread commits([&] { session->execute("UPDATE txinbox_consumed_message SET state = 'torn'"); });
    const auto state = [&] { return server.query("SELECT state FROM txinbox_consumed_message").at(0).at(0).bytes; };
    while (state() != "torn") Threads::instance()->sleep_for(1ms);
    const auto durable = [&](const std::string& in) {
      return server.count_durable("txinbox_consumed_message", {{"consumer", "svc"}, {"state", in}});
    };
    CHECK(durable("consumed") == (is_early ? 1 : 0));
    CHECK(durable("torn") == (is_early ? 0 : 1));
    Threads::instance()->sleep_for(2s);
    CHECK(durable("torn") == 1);
  });
}

TEST_CASE("simulated database: a pooler keeps connections open during a failover, but for those with a transaction") {
  for_each_server([](Server& server) {
    server.has_pooler = true;
    const auto idle = connect(server);
    const auto busy = connect(server);
    const std::int64_t first = server.store().server_number();
    busy->execute("BEGIN");
    busy->execute(insert("a"));
    (void)server.fail_over(Threads::instance()->now(), 1s);
    CHECK(server.store().server_number() > first);
    CHECK(error_of(*busy, "COMMIT") == server.personality().error.lost);
    CHECK(error_of(*idle, insert("a")) == "");
  });
}

TEST_CASE(
    "simulated database: a connection to a standby refuses changes, also later; a read-only server does so for a "
    "time") {
  for_each_server([](Server& server) {
    const auto before = connect(server);
    server.lead_to_standby(Threads::instance()->now() + 1s);
    const auto session = connect(server);
    Threads::instance()->sleep_for(2s);
    CHECK(error_of(*session, insert("a")) == server.personality().error.read_only);
    CHECK(error_of(*before, insert("b")) == "");
    CHECK(error_of(*connect(server), insert("c")) == "");
    before->execute("BEGIN");
    server.become_read_only(Threads::instance()->now() + 1s);
    CHECK(error_of(*before, insert("d")) == server.personality().error.read_only);
    before->execute("ROLLBACK");
    Threads::instance()->sleep_for(1s);
    CHECK(error_of(*before, insert("d")) == "");
  });
}

TEST_CASE("simulated database: a transaction that is in conflict with another one fails, perhaps only at COMMIT") {
  for_each_server([](Server& server) {
    const sim::Personality& personality = server.personality();
    const auto session = connect(server);
    session->execute("BEGIN");
    server.faults.conflict = 1;
    CHECK(error_of(*session, insert("a")) == (personality.conflicts_only_at_commit ? "" : personality.error.conflict));
    CHECK(session->has_transaction() == (personality.name != "mariadb"));  // as after a deadlock
    if (personality.conflicts_only_at_commit || personality.error.conflict.empty()) {
      CHECK(error_of(*session, "COMMIT") == personality.error.conflict);
    } else {
      server.faults.conflict = 0;
      CHECK(error_of(*session, "COMMIT") == "");  // it rolls back
    }
    CHECK_FALSE(session->has_transaction());
  });
}

TEST_CASE("simulated database: after a failover, a sequence gives numbers that rows have") {
  for_each_server([](Server& server) {
    const auto add = [&](std::string_view id) {
      return error_of(*connect(server),
                      fmt::format("INSERT INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, "
                                  "part) VALUES ('{}', 't', '', '', x'00', 0)",
                                  id));
    };
    CHECK(add("a") == "");
    CHECK(add("b") == "");
    Threads::instance()->sleep_for(1s);
    server.makes_sequences_stale = true;
    CHECK(server.fail_over(Threads::instance()->now(), 1ms).empty());
    const std::string_view expected = server.personality().has_sequences ? server.personality().error.duplicate : "";
    CHECK(server.had_stale_sequence() == server.personality().has_sequences);
    CHECK(add("c") == expected);
    (void)add("d");
    CHECK(add("e") == "");
  });
}

}  // namespace
}  // namespace txinbox::test
