#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "cli/orders.hpp"
#include "support/capabilities.hpp"

using namespace txinbox::test;

TEST_CASE("help is no error") {
  for (const Command::Arguments& arguments :
       {Command::Arguments{"--help"}, {"consume", "--help"}, {"migrate", "-h"}, {"--version"}}) {
    const Ended ended = run(arguments);
    CHECK(ended.status == 0);
    CHECK(ended.out.find("txinbox") != std::string::npos);
    CHECK(ended.err.empty());
  }
}

TEST_CASE("a command line that cannot be meant is status 2") {
  const std::string db = "sqlite:/nonexistent/x.db";
  auto consume = [](Command::Arguments more) {
    Command::Arguments words{"consume", "--consumer", "c"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  for (const Command::Arguments& arguments : {
           Command::Arguments{},
           {"frobnicate"},
           {"migrate", "--frobnicate"},
           {"redrive"},
           {"redrive", "--from", "file:orders.jsonl"},
           {"redrive", "--from", "redis://localhost"},
           {"redrive", "--from", "kafka://localhost/dead"},
           {"redrive", "--from", "kafka://localhost/dead?group=g", "--idle-exit", "0s"},
           {"redrive", "--from", "kafka://localhost/dead?group=g", "--rate", "-1"},
           {"redrive", "--from", "kafka://localhost/dead?group=g", "--key", "a"},
           {"migrate", "--db"},
           {"consume"},
           {"show", "--consumer", "c"},
           {"show", "key"},
           consume({"--key", "/a"}),
           consume({"--sql", "select 1"}),
           consume({"--key", "/a", "--sql", "select 1", "--sql-file", "x"}),
           consume({"--key", "a", "--sql", "select 1"}),
           consume({"--key", "/a", "--sql", ""}),
           consume({"--key", "/a", "--sql", "commit"}),
           consume({"--key", "/a", "--sql-file", "/nonexistent/x.sql"}),
           consume({"--key", "/a", "--sql-file", "/"}),
           consume({"--key", "/a", "--sql", "select :b", "--bind", "c=/c"}),
           consume({"--key", "/a", "--sql", "select :b", "--bind", "b"}),
           consume({"--key", "/a", "--sql", "select 1", "--message-id", "id"}),
           consume({"--key", "/a", "--sql", "select 1", "--content", "amount"}),
           consume({"--key", "/a", "--sql", "select 1", "--content", "/a", "--content", "/b~"}),
           consume({"--key", "/a", "--sql", "select 1", "/nonexistent/x.jsonl"}),
           consume({"--key", "/a", "--sql", "select 1", "/"}),
           consume({"--key", "/a", "--sql", "select 1", "--batch", "0"}),
           consume({"--key", "/a", "--sql", "select 1", "--batch", "-1"}),
           consume({"--key", "/a", "--sql", "select 1", "--batch", "10001"}),
           consume({"--key", "/a", "--sql", "select 1", "--batch", "all"}),
           consume({"--key", "/a", "--sql", "select 1", "a", "b"}),
           consume({"--key", "@key", "--sql", "select 1"}),
           consume({"--key", "/a", "--sql", "select 1", "--dead-letters", "x"}),
           consume({"--key", "/a", "--sql", "select 1", "--workers", "0"}),
           consume({"--key", "/a", "--sql", "select 1", "--workers", "2"}),
           consume({"--key", "/a", "--sql", "select 1", "--order", "key"}),
           consume({"--key", "/a", "--sql", "select 1", "--idle-exit", "1s"}),
           consume({"--key", "/a", "--sql", "select 1", "--backoff", "1s"}),
           consume({"--key", "/a", "--sql", "select 1", "--backoff", "1s", "/dev/null"}),
           consume({"--key", "/a", "--sql", "select 1", "--backoff", "soon"}),
           consume({"--key", "/a", "--sql", "select 1", "--order", "none"}),
           consume({"--key", "/a", "--sql", "select 1", "--idle-exit", "soon"}),
           consume({"--key", "/a", "--sql", "select 1", "--from", "nats://b/q"}),
           consume({"--key", "/a", "--sql", "select 1", "--from", "kafka://b/t", "file"}),
           consume({"--key", "/a", "--sql", "select 1", "--from", "kafka://b/t", "--stop-on-error"}),
           consume({"--key", "@header:", "--sql", "select 1", "--from", "kafka://b/t"}),
           consume({"--key", "@header-hex:", "--sql", "select 1", "--from", "kafka://b/t"}),
           consume({"--key", "@key-hex", "--sql", "select 1", "file"}),
           consume({"--key", "/a", "--sql", "select 1", "--from", "amqp://u:secret@b/v/q"}),
       }) {
    const Ended ended = run(arguments, db);
    CAPTURE(ended.err);
    CHECK(ended.status == 2);
    CHECK(ended.out.empty());
    CHECK(ended.err.starts_with("txinbox: "));
  }
}

TEST_CASE("an error of the command line says what to write instead") {
  const auto error_of = [](const Command::Arguments& words) {
    const Ended ended = run(words, "sqlite:/nonexistent/x.db");
    CHECK(ended.status == 2);
    return ended.err;
  };
  const Command::Arguments consume{"consume", "--consumer", "c", "--key", "/a", "--sql", "select 1"};
  const auto with = [&](Command::Arguments more) {
    more.insert(more.begin(), consume.begin(), consume.end());
    return more;
  };
  CHECK(error_of(with({"--bathc", "5"})).find("did you mean --batch?") != std::string::npos);
  CHECK(error_of(with({"--bathc=5"})).find("did you mean --batch?") != std::string::npos);
  CHECK(error_of(with({"--frobnicate"})).find("did you mean") == std::string::npos);
  // CLI11 would take the next option as the value.
  const auto contains = [&](const Command::Arguments& words, std::string_view text) {
    return error_of(words).find(text) != std::string::npos;
  };
  CHECK(contains({"failed", "discard", "--all", "--reason=", "--consumer=orders"}, "--reason: the value is empty"));
  CHECK(contains({"purge", "--older-than", "1d", "--by=", "--dry-run"}, "--by: the value is empty"));
  CHECK(contains({"purge", "--older-than", "1d", "--by", "--dry-run"}, "write --by=--dry-run"));
  CHECK(contains({"consume", "--consumer", "--stop-on-error"}, "write --consumer=--stop-on-error"));
  CHECK(error_of({"purge", "--older-than", "1d", "--max-rows", "0"}).find("at least 1") != std::string::npos);
  CHECK(error_of({"purge", "--older-than", "1d", "--max-rows", "-1"}).find("at least 1") != std::string::npos);
  for (const char* variable : {"TXINBOX_KAFKA_PASSWORD", "TXINBOX_RABBITMQ_PASSWORD", "TXINBOX_ROCKETMQ_SECRET"}) {
    CHECK(error_of(with({"--from", "amqp://u:secret@b/v/q"})).find(variable) != std::string::npos);
  }
}

TEST_CASE("a subcommand that does not exist is named") {
  const Ended ended = run({"frobnicate"});
  CHECK(ended.status == 2);
  CHECK(ended.err.find("'frobnicate'") != std::string::npos);
}

TEST_CASE("a look at a SQLite file that is not there does not make it; migrate does") {
  const auto file = std::filesystem::temp_directory_path() / ("txinbox-cli-" + std::to_string(getpid()) + ".db");
  const std::string db = "sqlite://" + file.string();
  for (const Command::Arguments& arguments :
       {Command::Arguments{"doctor"},
        {"status"},
        {"show", "--consumer", "c", "k"},
        {"forget", "--consumer", "c", "k"},
        {"consume", "--consumer", "c", "--key", "/a", "--sql", "select 1", "/dev/null"}}) {
    const Ended ended = run(arguments, db);
    CHECK(ended.status == 3);
    CHECK(ended.err.find("there is no such file") != std::string::npos);
    CHECK(!std::filesystem::exists(file));
  }
  CHECK(run({"migrate"}, db).status == 0);
  CHECK(run({"status"}, db).status == 0);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
}

TEST_CASE("--bind takes one value, so that the file may follow it") {
  const Ended ended =
      run({"consume", "--consumer", "c", "--key", "/a", "--sql", "select :b", "--bind", "b=/c", "/nonexistent/x.jsonl"},
          "sqlite:/nonexistent/x.db");
  CHECK(ended.err.find("/nonexistent/x.jsonl: No such file") != std::string::npos);
}

TEST_CASE("no database, or one of an unknown kind, is status 2") {
  CHECK(run({"migrate"}).status == 2);
  CHECK(run({"migrate", "--db", "oracle://h/db"}).status == 2);
  CHECK(run({"migrate", "--print", "--db", "oracle://h/db"}).status == 2);
}

TEST_CASE("a password in --db is refused with the remedy and printed nowhere") {
  for (const Command::Arguments& arguments : {Command::Arguments{"migrate", "--db", "mysql://u:hunter2@127.0.0.1/x"},
                                              {"migrate", "--db=postgresql://u:hunter2@127.0.0.1/x"},
                                              {"status", "--db", "postgresql://127.0.0.1/x?password=hunter2"},
                                              {"doctor", "--db", "soci:mysql://db=x password=hunter2"},
                                              {"migrate", "--dbb", "mysql://u:hunter2@127.0.0.1/x"},
                                              {"mysql://u:hunter2@127.0.0.1/x"},
                                              {"show", "--consumer", "c", "k", "mysql://u:hunter2@127.0.0.1/x"}}) {
    const Ended ended = run(arguments);
    CHECK(ended.status == 2);
    CHECK(ended.err.find("TXINBOX_DB") != std::string::npos);
    CHECK((ended.out + ended.err).find("hunter2") == std::string::npos);
  }
}

TEST_CASE("a password in TXINBOX_DB is used, and printed in no error") {
  for (const char* url : {"mysql://u:hunter2@127.0.0.1:1/x", "postgresql://u:hunter2@127.0.0.1:1/x",
                          "mysql://u:hunter2@127.0.0.1:notaport/x", "postgresql://u:hunter2@127.0.0.1:1/x?nonsense=1",
                          "soci:postgresql://host=127.0.0.1 port=1 password=hunter2", "soci:mysql://nonsense=hunter2",
                          "mysql://u:hunter2%zz@127.0.0.1/x"}) {
    const Ended ended = run({"doctor"}, url);
    CAPTURE(url);
    CHECK((ended.status == 2 || ended.status == 3));
    CHECK_FALSE(ended.err.empty());
    CHECK((ended.out + ended.err).find("hunter2") == std::string::npos);
  }
}

TEST_CASE("a database that cannot be opened is status 3") {
  const std::string too_long = "sqlite:/" + std::string(300, 'x');
  for (const std::string& url : {std::string("sqlite:/nonexistent/x.db"), too_long,
                                 std::string("mysql://127.0.0.1:1/x"), std::string("postgresql://127.0.0.1:1/x")}) {
    for (const Command::Arguments& arguments : {Command::Arguments{"migrate"},
                                                {"doctor"},
                                                {"status"},
                                                {"show", "--consumer", "c", "k"},
                                                {"forget", "--consumer", "c", "k"},
                                                {"consume", "--consumer", "c", "--key", "/a", "--sql", "select 1"}}) {
      const Ended ended = run(arguments, url, "{\"a\":1}\n");
      CAPTURE(ended.err);
      CHECK(ended.status == 3);
      CHECK(ended.out.empty());
    }
  }
}

TEST_CASE("a database without the tables is status 3, and says to migrate") {
  const TestDatabase db(TestDatabase::Tables::none);
  for (const Command::Arguments& arguments : {Command::Arguments{"status"},
                                              {"show", "--consumer", "c", "k"},
                                              {"forget", "--consumer", "c", "k"},
                                              {"consume", "--consumer", "c", "--key", "/a", "--sql", "select 1"}}) {
    const Ended ended = run(arguments, db.url());
    CAPTURE(ended.err);
    CHECK(ended.status == 3);
    CHECK(ended.err.find("migrate") != std::string::npos);
  }
}

TEST_CASE("SQL that the database refuses is reported once, before the first line") {
  const Orders orders;
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--sql",
                           "update t_inventory set stock = 0; insert into t_orderr values (:no)"},
                          orders.db.url(), Orders::line(1) + Orders::line(2));
  CHECK(ended.status == 2);
  CHECK(ended.out.empty());
  CHECK(ended.err.starts_with("txinbox: SQL statement 2: "));
  CHECK(ended.err.find("t_orderr") != std::string::npos);
  CHECK(orders.taken() == 0);
}

TEST_CASE("SQL that creates its own tables is not refused before it runs") {
  const Orders orders;
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--sql",
                           "create temporary table if not exists t_scratch (no varchar(60)); "
                           "insert into t_scratch values (:no); update t_inventory set stock = stock - 1"},
                          orders.db.url(), Orders::line(1) + Orders::line(2));
  CHECK(ended.status == 0);
  CHECK(ended.err.empty());  // PostgreSQL's notice that the table exists must not be printed, either
  CHECK(orders.taken() == 2);
}

TEST_CASE("a transient error that outlives its retries is status 3, and the summary says at which line" *
          doctest::skip(!can_raise_errors())) {
  const Orders orders;
  if (on_mysql()) {
    orders.db.run(
        "create trigger fails before insert on t_order for each row if new.no = 'o2' then "
        "signal sqlstate '40001' set mysql_errno = 1213; end if");
  } else {
    orders.db.run(
        "create function fails() returns trigger language plpgsql as "
        "'begin if new.no = ''o2'' then raise exception using errcode = ''40P01''; end if; return new; end'");
    orders.db.run("create trigger fails before insert on t_order for each row execute function fails()");
  }
  const Ended ended = orders.consume(Orders::line(1) + Orders::line(2) + Orders::line(3));
  CHECK(ended.status == 3);
  CHECK(ended.err.starts_with("line 2: statement 1: "));
  CHECK(counts(ended) == "consumed 1, already consumed 0, conflicts 0, parked 0, failed 1");
  CHECK(ended.last_line().ends_with("  stopped: last line handled 1, go on at line 2"));
  CHECK(orders.orders() == 1);
}

TEST_CASE("when the inbox's table goes away, it stops with status 3") {
  const Orders orders;
  Command command(Orders::arguments({"--json"}), orders.db.url());
  command.write(Orders::line(1));
  REQUIRE(command.printed("\"line\":1"));
  orders.db.run("drop table txinbox_consumed_message");
  command.write(Orders::line(2) + Orders::line(3));
  const Ended ended = command.wait();
  CHECK(ended.status == 3);
  CHECK(ended.err.starts_with("line 2: "));
  CHECK(ended.last_line().ends_with("\"last_line_handled\":1,\"go_on_at_line\":2}"));
  CHECK(orders.orders() == 1);
}

TEST_CASE("a handler that would commit is noticed, and its message does not count as consumed" *
          doctest::skip(!on_postgresql())) {  // other databases refuse the SQL before the first line
  const Orders orders;
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--sql", "do 'begin commit; end'; select 1"},
                          orders.db.url(), Orders::line(1));
  CHECK(ended.status == 1);
  CHECK(counts(ended) == "consumed 0, already consumed 0, conflicts 0, parked 0, failed 1");
}

TEST_CASE("the SQL can be in a file") {
  const Orders orders;
  const auto path = std::filesystem::temp_directory_path() / ("txinbox_cli_" + std::to_string(::getpid()) + ".sql");
  std::ofstream(path) << "-- takes one\nupdate t_inventory\n  set stock = stock - :qty\n  where sku = :sku;\n";
  const Ended ended = run({"consume", "--consumer", "c", "--key", "/no", "--sql-file", path.string()}, orders.db.url(),
                          Orders::line(1));
  std::filesystem::remove(path);
  CHECK(ended.status == 0);
  CHECK(orders.taken() == 1);
}

TEST_CASE("a file of SQL has at most 64 MiB") {
  const Ended ended =
      run({"consume", "--consumer", "c", "--key", "/no", "--sql-file", "/dev/zero"}, "sqlite:/nonexistent/x.db");
  CHECK(ended.status == 2);
  CHECK(ended.err == "txinbox: /dev/zero: it has more than 67108864 bytes\n");
}

TEST_CASE("an unavailable database is reported in one line") {
  for (const char* url : {"mysql://127.0.0.1:1/x", "postgresql://127.0.0.1:1/x", "sqlite:/nonexistent/x.db"}) {
    const Ended ended = run({"migrate"}, url);
    CAPTURE(ended.err);
    CHECK(ended.status == 3);
    CHECK(ended.err.ends_with('\n'));
    CHECK(ended.err.find('\n') + 1 == ended.err.size());
  }
  const TestDatabase db(TestDatabase::Tables::none);
  db.run("create table txinbox_consumed_message (consumer integer)");
  const Ended ended = run({"migrate"}, db.url());  // many differences
  CHECK(ended.status == 3);
  CHECK(ended.err.find('\n') + 1 == ended.err.size());
}

TEST_CASE("a locked SQLite file is reported without names of functions" * doctest::skip(!on_sqlite3())) {
  const Orders orders;
  const auto other = orders.db.session();
  *other << "pragma locking_mode = exclusive";
  *other << "begin exclusive";
  const Ended ended = run({"forget", "--consumer", "c", "k"}, orders.db.url());
  CAPTURE(ended.err);
  CHECK(ended.status == 3);
  CHECK(ended.err == "txinbox: SQLite error 5 (the database is locked)\n");
  *other << "rollback";
}

TEST_CASE("a consumer's name or a key that is too long is refused, not truncated") {
  const Orders orders;
  CHECK(run({"consume", "--consumer", std::string(65, 'c'), "--key", "/a", "--sql", "select 1"}, orders.db.url(), "{}")
            .status == 2);
  CHECK(run({"show", "--consumer", "c", std::string(256, 'k')}, orders.db.url()).status == 2);
  const Ended ended = orders.consume(R"({"no":")" + std::string(256, 'k') + R"(","sku":"a","qty":1})");
  CHECK(ended.status == 1);
  CHECK(orders.orders() == 0);
}
