#include <mysql.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "database.h"

static MYSQL* db;
static MYSQL_STMT *claim_statement, *update_statement;

static void run(const char* sql) {
  if (mysql_query(db, sql) != 0) fail("a statement", mysql_error(db));
}

static MYSQL_STMT* prepare(const char* sql) {
  MYSQL_STMT* statement = mysql_stmt_init(db);
  if (mysql_stmt_prepare(statement, sql, strlen(sql)) != 0) fail("prepare", mysql_stmt_error(statement));
  return statement;
}

/* Returns the number of the error. 0: it succeeded. */
static unsigned run_prepared(MYSQL_STMT* statement, MYSQL_BIND* value) {
  if (mysql_stmt_bind_param(statement, value)) fail("bind", mysql_stmt_error(statement));
  return mysql_stmt_execute(statement) == 0 ? 0 : mysql_stmt_errno(statement);
}

void connect_to(const char* url) {
  char user[64], password[128], host[128], name[64];
  unsigned port;
  if (sscanf(url, "%*[^:]://%63[^:]:%127[^@]@%127[^:]:%u/%63s", user, password, host, &port, name) != 5) {
    fail("the URL", "it has another form");
  }
  db = mysql_init(NULL);
  if (mysql_real_connect(db, host, user, password, name, port, NULL, 0) == NULL) fail("connect", mysql_error(db));
  claim_statement = prepare(
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at) "
      "VALUES ('by-hand', ?, 'consumed', x'00000000000000000000000000000000', UTC_TIMESTAMP(6))");
  update_statement = prepare("UPDATE bench_account SET n = n + 1 WHERE id = ?");
}

void disconnect(void) {
  mysql_stmt_close(claim_statement);
  mysql_stmt_close(update_statement);
  mysql_close(db);
}

void begin(void) { run("BEGIN"); }
void commit(void) { run("COMMIT"); }

bool claim(const char* key) {
  MYSQL_BIND value = {.buffer_type = MYSQL_TYPE_STRING, .buffer = (void*)key, .buffer_length = strlen(key)};
  const unsigned error = run_prepared(claim_statement, &value);
  if (error != 0 && error != ER_DUP_ENTRY) fail("claim", mysql_stmt_error(claim_statement));
  return error == 0;
}

void update(long long account) {
  MYSQL_BIND value = {.buffer_type = MYSQL_TYPE_LONGLONG, .buffer = &account};
  if (run_prepared(update_statement, &value) != 0) fail("update", mysql_stmt_error(update_statement));
}
