#include <sqlite3.h>
#include <string.h>

#include "database.h"

static sqlite3* db;
static sqlite3_stmt *begin_statement, *claim_statement, *update_statement, *commit_statement;

static sqlite3_stmt* prepare(const char* sql) {
  sqlite3_stmt* statement;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) fail("prepare", sqlite3_errmsg(db));
  return statement;
}

static void run(sqlite3_stmt* statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) fail("step", sqlite3_errmsg(db));
  sqlite3_reset(statement);
}

void connect_to(const char* url) {
  if (sqlite3_open(strchr(url, ':') + 1, &db) != SQLITE_OK) fail("open", sqlite3_errmsg(db));
  if (sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", NULL, NULL,
                   NULL) != SQLITE_OK) {
    fail("settings", sqlite3_errmsg(db));
  }
  begin_statement = prepare("BEGIN IMMEDIATE");
  claim_statement = prepare(
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "VALUES ('by-hand', ?1, 'consumed', zeroblob(16)) ON CONFLICT (consumer, business_key) DO NOTHING");
  update_statement = prepare("UPDATE bench_account SET n = n + 1 WHERE id = ?1");
  commit_statement = prepare("COMMIT");
}

void disconnect(void) {
  sqlite3_finalize(begin_statement);
  sqlite3_finalize(claim_statement);
  sqlite3_finalize(update_statement);
  sqlite3_finalize(commit_statement);
  sqlite3_close(db);
}

void begin(void) { run(begin_statement); }
void commit(void) { run(commit_statement); }

bool claim(const char* key) {
  sqlite3_bind_text(claim_statement, 1, key, -1, SQLITE_STATIC);
  run(claim_statement);
  return sqlite3_changes(db) == 1;
}

void update(long long account) {
  sqlite3_bind_int64(update_statement, 1, account);
  run(update_statement);
}
