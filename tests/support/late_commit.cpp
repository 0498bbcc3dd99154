#include "support/late_commit.hpp"

#include <sys/socket.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "backend/mysql/native.hpp"
#include "backend/postgresql/native.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

/// Waits until the server has begun to run the statement.
void let_it_begin() { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }

}  // namespace

void prepare_late_commit(const TestDatabase& db) {
  if (on_mysql()) db.run("create procedure late_commit() begin do sleep(0.6); commit; end");
}

void commit_late(soci::session& sql) {
  if (on_postgresql()) {
    PGconn* pg = backend::postgresql_native(*backend::connection_of(sql));
    PQsendQuery(pg, "SELECT pg_sleep(0.6); COMMIT");
    PQflush(pg);
    let_it_begin();
    shutdown(PQsocket(pg), SHUT_RDWR);
  } else if (on_mysql()) {
    constexpr std::string_view statement = "CALL late_commit()";
    MYSQL* db = backend::mysql_native(*backend::connection_of(sql));
    mysql_send_query(db, statement.data(), statement.size());
    let_it_begin();
    shutdown(static_cast<int>(mysql_get_socket(db)), SHUT_RDWR);
  }
}

}  // namespace txinbox::test
