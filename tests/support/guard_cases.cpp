#include "support/guard_cases.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "support/mysql_sessions.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

// Results that several cases share.
const Ending consumed{"consumed", "consumed", 1, 1};
const Ending undone{"transaction_lost", "none", 0, 0};
const Ending undone_but_after{"transaction_lost", "none", 0, 1};
const Ending torn{"transaction_lost", "torn", 1, 0};
const Ending torn_and_after{"transaction_lost", "torn", 1, 1};

using Act = std::function<void(soci::session&, TestDatabase&)>;

Act statement(const std::string& text) {
  return [text](soci::session& sql, TestDatabase&) { quietly([&] { sql << text; }); };
}

/// How a case ends on one database.
struct Endings {
  std::optional<Ending> in_pool;
  std::optional<Ending> in_session;
};

/// The same result in a pool and on a session.
Endings both(const Ending& ending) { return {ending, ending}; }

/// Different results: a pool on PostgreSQL refuses what a handler writes after the end of the transaction, and a pool
/// refuses to reconnect. txinbox does not change a caller's session in this way.
const Endings all_undone_but_on_session{undone, undone_but_after};

GuardCase in_order(const std::string& name, Act act, const Endings& sqlite, const Endings& mysql,
                   const Endings& postgresql) {
  const Endings& endings = on_sqlite3() ? sqlite : on_mysql() ? mysql : postgresql;
  return {name, std::move(act), endings.in_pool, endings.in_session};
}

/// The misbehaviour of this name in the list.
Act listed(const std::string& name) {
  return [name](soci::session& sql, TestDatabase&) {
    torture::misbehave(name, {.sql = sql,
                              .write = "insert into effect values ('other')",
                              .failing_write = "insert into effect values (null)"});
  };
}

GuardCase in_order(const std::string& name, const Endings& sqlite, const Endings& mysql, const Endings& postgresql) {
  return in_order(name, listed(name), sqlite, mysql, postgresql);
}

Act then_throws(Act act) {
  return [act = std::move(act)](soci::session& sql, TestDatabase& db) {
    act(sql, db);
    throw HandlersOwnError("thrown by the handler");
  };
}

/// Makes the database roll back the handler's session by a real deadlock, and ignores the error.
void swallow_deadlock(soci::session& sql, TestDatabase& db) {
  sql << "update pair set n = n + 1 where id = 1";
  const auto other = db.session();
  other->begin();
  if (on_postgresql()) {
    *other << "set local deadlock_timeout = '1min'";
    sql << "set local deadlock_timeout = '20ms'";
  } else {
    *other << "update ballast set n = n + 1";  // InnoDB rolls back the transaction that has written less
  }
  *other << "update pair set n = n + 1 where id = 2";
  auto crossing =
      std::async(std::launch::async, [&] { quietly([&] { *other << "update pair set n = n + 1 where id = 1"; }); });
  // It does not wait if a fault has ended the handler's session.
  wait_until_one_waits_for_lock(db, [&] { return crossing.wait_for(0s) == std::future_status::ready; });
  bool deadlocked = false;
  try {
    sql << "update pair set n = n + 1 where id = 2";
  } catch (const soci::soci_error&) {
    deadlocked = true;
  }
  crossing.get();
  other->rollback();
  if (!deadlocked) throw std::logic_error("the test caused no deadlock");
}

/// Waits for a lock of another session until the time-out, and ignores the error.
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
  if (!timed_out) throw std::logic_error("the test did not wait for a lock");
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

void wait_until_one_waits_for_lock(const TestDatabase& db, const std::function<bool()>& over) {
  const std::string waiting =
      on_mysql() ? "select count(*) from " + sessions_waiting_for_lock() + " w join " + processlist() +
                       " p on p.id = w.id where p.db = database()"
                 : "select count(*) from pg_locks w where not w.granted and exists (select 1 from pg_locks h join "
                   "pg_class c on c.oid = h.relation join pg_namespace n on n.oid = c.relnamespace "
                   "where h.pid = w.pid and n.nspname = current_schema())";
  // InnoDB on MariaDB answers from a cache if it is asked again within 100 ms.
  while (db.number(waiting) == 0 && !(over && over())) std::this_thread::sleep_for(std::chrono::milliseconds(150));
}

void kill_connection(long long id, const TestDatabase& db) {
  if (on_mysql()) {
    const std::string is_there = "select count(*) from " + processlist() + " where id = " + std::to_string(id);
    db.run("kill " + std::to_string(id));
    while (db.number(is_there) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } else if (on_postgresql()) {
    db.run("select pg_terminate_backend(" + std::to_string(id) + ", 60000)");
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
  const Endings never;
  const Ending own_error_undone{"handler's error", "none", 0, 0};
  const Ending own_error_torn{"handler's error", "torn", 1, 0};
  return {
      in_order(
          "is honest", [](soci::session&, TestDatabase&) {}, both(consumed), both(consumed), both(consumed)),
      in_order("uses a savepoint of its own", both(consumed), both(consumed), both(consumed)),
      in_order("swallows a deadlock", swallow_deadlock, never, both(undone), both(undone)),
      in_order("swallows a lock time-out", swallow_lock_timeout, never, both(consumed), both(undone)),
      in_order("swallows an SQL error", both(consumed), both(consumed), both(undone)),
      in_order("calls commit()", {undone, torn_and_after}, both(torn), all_undone_but_on_session),
      in_order("lets the error of commit() through", never, never, both(undone)),
      in_order("calls rollback()", all_undone_but_on_session, both(undone), all_undone_but_on_session),
      in_order("calls begin()", both(consumed), both(torn), both(consumed)),
      in_order("commits a soci::transaction", both(consumed), both(torn), all_undone_but_on_session),
      in_order("rolls back a soci::transaction", both(consumed), both(torn), all_undone_but_on_session),
      in_order("rolls back and begins again", both(undone), both(undone), both(undone)),
      in_order("commits and begins again", {undone, torn}, both(torn), both(undone)),
      in_order("runs COMMIT AND CHAIN", statement("commit and chain"), both(consumed), both(torn),
               all_undone_but_on_session),
      in_order("runs ROLLBACK AND CHAIN", statement("rollback and chain"), both(consumed), both(undone), both(undone)),
      in_order("creates a table", statement("create table made_by_handler (id integer)"), both(consumed), both(torn),
               both(consumed)),
      in_order("truncates a table", statement("truncate table ballast"), both(consumed), both(torn), both(consumed)),
      in_order("locks a table",
               statement(on_postgresql() ? "lock table ballast" : "lock tables ballast write, effect write"),
               both(consumed), both(torn), both(consumed)),
      in_order("calls a procedure that commits", statement("call committing()"), never, both(torn), both(undone)),
      in_order("switches autocommit on", statement("set autocommit = 1"), never, both(torn_and_after), never),
      in_order("switches autocommit off", statement("set autocommit = 0"), never, both(consumed), never),
      in_order("prepares the transaction for two phases", statement("prepare transaction 'txinbox'"), never, never,
               all_undone_but_on_session),
      in_order("checks all constraints at once", statement("set constraints all immediate"), never, never,
               both(undone)),
      in_order("meets OR ROLLBACK", statement("insert or rollback into pair values (1, 0)"), all_undone_but_on_session,
               never, never),
      in_order("commits, then throws", then_throws(listed("calls commit()")), {own_error_undone, own_error_torn},
               both(own_error_torn), both(own_error_undone)),
      in_order("rolls back, then throws", then_throws(listed("calls rollback()")), both(own_error_undone),
               both(own_error_undone), both(own_error_undone)),
      in_order("is disconnected and reconnects", reconnect_after_kill, never, all_undone_but_on_session,
               all_undone_but_on_session),
      in_order("reconnects", both(undone), all_undone_but_on_session, all_undone_but_on_session),
      in_order("closes the session", both(undone), both(undone), both(undone)),
  };
}

}  // namespace txinbox::test
