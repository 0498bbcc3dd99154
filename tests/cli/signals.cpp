#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <unistd.h>

#include "cli/orders.hpp"
#include "support/mysql_sessions.hpp"

using namespace txinbox::test;

namespace {

class File {
 public:
  explicit File(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("txinbox_cli_" + std::to_string(::getpid()) + ".jsonl")) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// SQL that takes about five seconds for a line whose :n is 5, and no time if it is 0.
std::string slow_sql() {
  if (on_mysql()) return "select sleep(:n)";
  if (on_postgresql()) return "select pg_sleep(:n::integer)";
  return "insert into t_slow with recursive c(x) as (select 1 union all select x + 1 from c where x < :n * 4000000) "
         "select count(*) from c";
}

// Whether a consumer runs the slow SQL, or at least is in that transaction.
bool is_slow(const TestDatabase& db) {
  if (on_sqlite3()) {
    const auto sql = db.session();
    *sql << "pragma busy_timeout = 0";
    try {
      *sql << "begin immediate";
    } catch (const soci::soci_error&) {
      return true;
    }
    *sql << "rollback";
    return false;
  }
  return db.number(on_mysql() ? "select count(*) from " + processlist() +
                                    " where db = database() and "
                                    "info like 'select sleep(%'"
                              : "select count(*) from pg_stat_activity where query like '%pg_sleep(%integer)%' and "
                                "wait_event = 'PgSleep'") != 0;
}

// A consumer that has consumed its first message, and now runs the slow SQL of the first message of a batch of two.
class InHand {
 public:
  explicit InHand(const std::string& sql) {
    orders.db.run("create table t_slow (x integer)");
    command.emplace(Command::Arguments{"consume", "--json", "--consumer", "c", "--key", "/no", "--sql", sql},
                    orders.db.url());
    command->write("{\"no\":1,\"n\":0}\n");
    REQUIRE(command->printed("\"line\":1"));
    command->write("{\"no\":2,\"n\":5}\n{\"no\":3,\"n\":0}\n");
    while (!is_slow(orders.db)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    command->write("{\"no\":4,\"n\":0}\n");
  }

  Orders orders;
  std::optional<Command> command;
};

}  // namespace

TEST_CASE("consume says that it waits for the database" * doctest::test_suite("timed")) {
  const Orders orders;
  orders.consume(Orders::line(1));  // SQLite's file is in WAL mode now, so opening it needs no lock
  const auto other = orders.db.session();
  *other << (on_sqlite3() ? "begin immediate" : "begin");
  *other << "update t_inventory set stock = stock + 1 where sku = 'a'";
  Command consume(Orders::arguments(), orders.db.url());
  consume.write(Orders::line(2));
  consume.close_input();
  CHECK(consume.printed("the database has not answered for 5 s"));
  *other << "rollback";
  const Ended ended = consume.wait();
  CHECK_MESSAGE(ended.status == 0, ended.err);
  CHECK(orders.orders() == 2);
}

TEST_CASE("a run that is killed in the middle of a file and repeated has the same result" *
          doctest::test_suite("timed")) {
  constexpr int messages = 20'000;
  const Orders orders;
  std::string text;
  for (int i = 0; i < messages; ++i) text += Orders::line(i) + (i % 3 == 0 ? Orders::line(i) : "");
  const File file(text);

  int kills = 0;
  for (int i = 0; i < 3; ++i) {
    Command command(Orders::arguments({"--json", file.path()}), orders.db.url());
    REQUIRE(command.printed("\"outcome\":\"consumed\""));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    command.signal(SIGKILL);
    if (command.wait().status == -SIGKILL) ++kills;
  }
  REQUIRE(kills > 0);
  CHECK(orders.taken_without_order() == 0);

  const Ended rest = run(Orders::arguments({file.path()}), orders.db.url());
  CHECK(rest.status == 0);
  CHECK(orders.orders() == messages);
  CHECK(orders.taken() == messages);
}

TEST_CASE("a signal wakes a consumer that waits for input, and the summary says where it stopped") {
  for (const int signal : {SIGTERM, SIGINT}) {
    const Orders orders;
    Command command(Orders::arguments({"--json"}), orders.db.url());
    command.write(Orders::line(1) + Orders::line(2));
    REQUIRE(command.printed("\"line\":2"));
    command.signal(signal);
    REQUIRE(command.printed("\"summary\":true"));  // although its input is still open
    const Ended ended = command.wait();
    CHECK(ended.status == 4);
    CHECK(ended.last_line().ends_with("\"last_line_handled\":2,\"go_on_at_line\":3}"));
  }
}

TEST_CASE("after a signal, the current batch finishes, and no other batch begins" * doctest::test_suite("timed")) {
  InHand run(slow_sql() + "; update t_inventory set stock = stock - 1");
  run.command->signal(SIGTERM);
  const Ended ended = run.command->wait();
  CHECK(ended.status == 4);
  CHECK(ended.last_line().starts_with(R"({"summary":true,"consumed":3,)"));
  CHECK(ended.last_line().ends_with("\"last_line_handled\":3,\"go_on_at_line\":4}"));
  CHECK(run.orders.taken() == 3);
}

TEST_CASE("two signals at the same time count as one" * doctest::test_suite("timed")) {
  InHand run(slow_sql() + "; update t_inventory set stock = stock - 1");
  run.command->signal(SIGTERM);
  run.command->signal(SIGINT);
  const Ended ended = run.command->wait();
  CHECK(ended.status == 4);
  CHECK(ended.last_line().starts_with(R"({"summary":true,"consumed":3,)"));
}

TEST_CASE("a second signal ends the command at once, and the current batch leaves no rows" *
          doctest::test_suite("timed")) {
  InHand run("update t_inventory set stock = stock - 1; " + slow_sql());
  // The loop sends the signal repeatedly: two signals that arrive before the first is taken count as one.
  while (!run.command->has_ended()) {
    run.command->signal(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  CHECK(run.command->wait().status == -SIGTERM);
  CHECK(run.orders.taken() == 1);
}

TEST_CASE("the command stops when nobody reads its output") {
  const Orders orders;
  Command command(Orders::arguments({"--json", "--batch", "1"}), orders.db.url());
  command.write(Orders::line(1));
  REQUIRE(command.printed("\"line\":1"));
  command.close_output();
  command.write(Orders::line(2) + Orders::line(3));
  const Ended ended = command.wait();
  CHECK(ended.status == 4);
  CHECK(ended.err.starts_with("txinbox: standard output: "));
  CHECK(orders.orders() == 2);
}
