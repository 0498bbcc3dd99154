#include "support/guard_cases.hpp"

#include <chrono>
#include <string>
#include <thread>

namespace txinbox::test {
namespace {

// Endings that recur. "gone": SQL after the transaction's end ran on its own and cannot be undone.
const Ending consumed{"consumed", "consumed", 1, 1};
const Ending undone{"transaction_lost", "none", 0, 0};
const Ending undone_but_after{"transaction_lost", "none", 0, 1};
const Ending torn{"transaction_lost", "torn", 1, 0};
const Ending torn_and_after{"transaction_lost", "torn", 1, 1};

using Act = std::function<void(soci::session&, TestDatabase&)>;

Act statement(const std::string& text) {
  return [text](soci::session& sql, TestDatabase&) { quietly([&] { sql << text; }); };
}

/// The endings of one case in the order: SQLite pool, SQLite session, MariaDB/MySQL, PostgreSQL. The
/// last two end alike in a pool and on a session.
GuardCase in_order(const std::string& name, Act act, std::optional<Ending> sqlite_pool,
                   std::optional<Ending> sqlite_session, std::optional<Ending> mysql,
                   std::optional<Ending> postgresql) {
  if (on_sqlite3()) return {name, std::move(act), std::move(sqlite_pool), std::move(sqlite_session)};
  auto& ending = on_mysql() ? mysql : postgresql;
  return {name, std::move(act), ending, ending};
}

/// Makes the handler's session the victim of a real deadlock, and swallows the error.
void swallow_deadlock(soci::session& sql, TestDatabase& db) {
  sql << "update pair set n = n + 1 where id = 1";
  const auto other = db.session();
  other->begin();
  if (on_postgresql()) {
    *other << "set local deadlock_timeout = '1min'";
    sql << "set local deadlock_timeout = '20ms'";
  } else {
    *other << "update ballast set n = n + 1";  // InnoDB rolls back the one that has written less
  }
  *other << "update pair set n = n + 1 where id = 2";
  std::thread crossing([&] { quietly([&] { *other << "update pair set n = n + 1 where id = 1"; }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  bool deadlocked = false;
  try {
    sql << "update pair set n = n + 1 where id = 2";
  } catch (const soci::soci_error&) {
    deadlocked = true;
  }
  crossing.join();
  other->rollback();
  if (!deadlocked) throw std::logic_error("the test made no deadlock");
}

/// Waits for a lock that another session holds until the time is over, and swallows the error.
void swallow_lock_timeout(soci::session& sql, TestDatabase& db) {
  if (on_mysql()) sql << "set innodb_lock_wait_timeout = 1";
  if (on_postgresql()) sql << "set local lock_timeout = '50ms'";
  const auto other = db.session();
  other->begin();
  *other << "update pair set n = n + 1 where id = 1";
  bool timed_out = false;
  try {
    sql << "update pair set n = n + 1 where id = 1";
  } catch (const soci::soci_error&) {
    timed_out = true;
  }
  other->rollback();
  if (!timed_out) throw std::logic_error("the test met no lock");
}

void reconnect_after_kill(soci::session& sql, TestDatabase& db) {
  kill_connection(sql, db);
  quietly([&] { sql << "insert into effect values ('killed')"; });
  sql.reconnect();
}

}  // namespace

long long connection_id(soci::session& sql) {
  long long id = 0;
  if (on_mysql()) sql << "select connection_id()", soci::into(id);
  if (on_postgresql()) sql << "select pg_backend_pid()", soci::into(id);
  return id;
}

void kill_connection(long long id, const TestDatabase& db) {
  if (on_mysql()) {
    const std::string is_there = "select count(*) from information_schema.processlist where id = " + std::to_string(id);
    db.run("kill " + std::to_string(id));
    while (db.number(is_there) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else if (on_postgresql()) {
    db.run("select pg_terminate_backend(" + std::to_string(id) + ", 5000)");
  }
}

void prepare_guard_case(TestDatabase& db) {
  db.run("create table pair (id integer primary key, n integer not null)");
  db.run("insert into pair values (1, 0), (2, 0)");
  db.run("create table ballast (id integer primary key, n integer not null)");
  db.run("insert into ballast values (1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0),(9,0)");
  if (!on_sqlite3()) {
    db.run(on_mysql() ? "create procedure committing() begin commit; end"
                      : "create procedure committing() language plpgsql as $$ begin commit; end $$");
  }
}

std::vector<GuardCase> guard_cases() {
  const std::optional<Ending> never;
  return {
      in_order(
          "is honest", [](soci::session&, TestDatabase&) {}, consumed, consumed, consumed, consumed),
      in_order(
          "uses a savepoint of its own",
          [](soci::session& sql, TestDatabase&) {
            sql << "savepoint mine";
            sql << "insert into effect values ('other')";
            sql << "rollback to savepoint mine";
            sql << "release savepoint mine";
          },
          consumed, consumed, consumed, consumed),
      in_order("swallows a deadlock", swallow_deadlock, never, never, undone, undone),
      in_order("swallows a lock time-out", swallow_lock_timeout, never, never, consumed, undone),
      in_order("swallows an SQL error", statement("insert into effect values (null)"), consumed, consumed, consumed,
               undone),
      in_order(
          "calls commit()", [](soci::session& sql, TestDatabase&) { quietly([&] { sql.commit(); }); }, undone,
          torn_and_after, torn, torn_and_after),
      in_order(
          "calls rollback()", [](soci::session& sql, TestDatabase&) { quietly([&] { sql.rollback(); }); }, undone,
          undone_but_after, undone, undone_but_after),
      in_order(
          "calls begin()", [](soci::session& sql, TestDatabase&) { quietly([&] { sql.begin(); }); }, consumed, consumed,
          torn, consumed),
      in_order(
          "commits a soci::transaction",
          [](soci::session& sql, TestDatabase&) {
            quietly([&] {
              soci::transaction inner(sql);
              inner.commit();
            });
          },
          consumed, consumed, torn, torn_and_after),
      in_order(
          "rolls back a soci::transaction",
          [](soci::session& sql, TestDatabase&) { quietly([&] { const soci::transaction inner(sql); }); }, consumed,
          consumed, torn, undone_but_after),
      in_order(
          "rolls back and begins again",
          [](soci::session& sql, TestDatabase&) {
            quietly([&] { sql.rollback(); });
            quietly([&] { sql.begin(); });
          },
          undone, undone, undone, undone),
      in_order(
          "commits and begins again",
          [](soci::session& sql, TestDatabase&) {
            quietly([&] { sql.commit(); });
            quietly([&] { sql.begin(); });
          },
          undone, torn, torn, torn),
      in_order("runs COMMIT AND CHAIN", statement("commit and chain"), consumed, consumed, torn, torn),
      in_order("runs ROLLBACK AND CHAIN", statement("rollback and chain"), consumed, consumed, undone, undone),
      in_order("creates a table", statement("create table made_by_handler (id integer)"), consumed, consumed, torn,
               consumed),
      in_order("truncates a table", statement("truncate table ballast"), consumed, consumed, torn, consumed),
      in_order("locks a table",
               statement(on_postgresql() ? "lock table ballast" : "lock tables ballast write, effect write"), consumed,
               consumed, torn, consumed),
      in_order("calls a procedure that commits", statement("call committing()"), never, never, torn, undone),
      in_order("switches autocommit on", statement("set autocommit = 1"), never, never, torn_and_after, never),
      in_order("switches autocommit off", statement("set autocommit = 0"), never, never, consumed, never),
      in_order("prepares the transaction for two phases", statement("prepare transaction 'txinbox'"), never, never,
               never, undone_but_after),
      in_order("meets OR ROLLBACK", statement("insert or rollback into pair values (1, 0)"), undone, undone_but_after,
               never, never),
      in_order(
          "commits, then throws",
          [](soci::session& sql, TestDatabase&) {
            quietly([&] { sql.commit(); });
            throw HandlersOwnError("thrown by the handler");
          },
          Ending{"handler's error", "none", 0, 0}, Ending{"handler's error", "torn", 1, 0},
          Ending{"handler's error", "torn", 1, 0}, Ending{"handler's error", "torn", 1, 0}),
      in_order(
          "rolls back, then throws",
          [](soci::session& sql, TestDatabase&) {
            quietly([&] { sql.rollback(); });
            throw HandlersOwnError("thrown by the handler");
          },
          Ending{"handler's error", "none", 0, 0}, Ending{"handler's error", "none", 0, 0},
          Ending{"handler's error", "none", 0, 0}, Ending{"handler's error", "none", 0, 0}),
      in_order("is disconnected and reconnects", reconnect_after_kill, never, never, undone_but_after,
               undone_but_after),
      in_order(
          "reconnects", [](soci::session& sql, TestDatabase&) { sql.reconnect(); }, undone, undone_but_after,
          undone_but_after, undone_but_after),
      in_order(
          "closes the session", [](soci::session& sql, TestDatabase&) { sql.close(); }, undone, undone, undone, undone),
  };
}

}  // namespace txinbox::test
