#include "faults/fault_database.hpp"

#include <chrono>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>

#include "faults/subject.hpp"
#include "support/guard_cases.hpp"
#include "support/mysql_sessions.hpp"
#include "support/schema_tools.hpp"

namespace txinbox::test {

FaultDatabase::FaultDatabase() {
  run(std::string("create table fenced (id ") + (on_mysql() ? "varbinary" : "varchar") +
      "(255) not null primary key, fence bigint not null)");
}

Rows FaultDatabase::rows_of(const Message& message) const {
  return {effects_of(message.business_key + "/1"), effects_of(message.business_key + "/2")};
}

/// The rows of a message that was refused are rolled back.
Rows FaultDatabase::effect_of(const Subject& subject) { return subject.refuses ? Rows{0, 0} : Rows{1, 1}; }

std::string FaultDatabase::lease_of(const Message& message) const {
  return claim_of(message) + " until " +
         text("select lease_expires_at from txinbox_consumed_message where business_key = '" + message.business_key +
              "'");
}

std::string FaultDatabase::stored_for(const Message& message) const {
  return text(std::string("select ") + (on_postgresql() ? "convert_from(result, 'UTF8')" : "result") +
              " from txinbox_consumed_message where business_key = '" + message.business_key + "'");
}

void FaultDatabase::check_promise(const Subject& subject, std::span<const Message> messages) const {
  for (const Message& each : messages) {
    CAPTURE(each.business_key);
    const Rows rows = rows_of(each);
    if (subject.leased) {
      CHECK(rows.first >= 1);
      CHECK(rows.first == rows.second);
      CHECK(number("select count(*) from fenced f join txinbox_consumed_message m on m.lease_fence = f.fence "
                   "where f.id = '" +
                   each.business_key + "' and m.business_key = '" + each.business_key + "'") == 1);
    } else {
      CHECK(rows == effect_of(subject));
    }
    CHECK(number("select count(*) from txinbox_outbox_message where aggregateid = '" + each.business_key + "'") ==
          (subject.sends ? 1 : 0));
    CHECK(claim_of(each) == "consumed");
    CHECK(stored_for(each) == "stored for " + each.business_key);
  }
}

void FaultDatabase::let_leases_end() const {
  run("update txinbox_consumed_message set lease_expires_at = " +
      here<std::string>("'2020-01-01 00:00:00.000'", "'2020-01-01'", "'2020-01-01'") +
      " where lease_expires_at is not null");
}

void FaultDatabase::check_clean(soci::session& sql, const std::string& settings_when_new) const {
  const std::string settings = settings_of(sql);
  CHECK(settings == settings_when_new);
  const long long before = effects_of("by itself");
  sql << "insert into effect values ('by itself')";
  CHECK(effects_of("by itself") == before + 1);
}

void FaultDatabase::check_nothing_open() const {
  const std::string open = on_mysql()
                               ? "select count(*) from " + sessions_in_transaction() + " t join " + processlist() +
                                     " p on p.id = t.id where p.db = database() and p.id <> connection_id()"
                               : "select count(distinct l.pid) from pg_locks l join pg_class c on c.oid = l.relation "
                                 "join pg_namespace n on n.oid = c.relnamespace "
                                 "where n.nspname = current_schema() and l.pid <> pg_backend_pid()";
  // One query at a time, with pauses: InnoDB on MariaDB caches this table for 100 ms after a query.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  long long left = 1;
  for (int tries = 0; tries < 400 && left != 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    left = number(open);
  }
  CHECK(left == 0);
}

std::string FaultDatabase::session_from(int client_port) const {
  const std::string port = std::to_string(client_port);
  return text(on_mysql() ? "select id from " + processlist() + " where host like '%:" + port + "'"
                         : "select cast(pid as text) from pg_stat_activity where client_port = " + port);
}

bool FaultDatabase::end_session(int client_port) const {
  const std::string id = session_from(client_port);
  if (!id.empty()) kill_connection(std::stoll(id), *this);
  return !id.empty();
}

bool FaultDatabase::cancel_statement(int client_port) const {
  const std::string id = session_from(client_port);
  if (!id.empty()) run(on_mysql() ? "kill query " + id : "select pg_cancel_backend(" + id + ")");
  return !id.empty();
}

}  // namespace txinbox::test
