/* A program that does the same as `txinbox consume --batch N` on SQLite, as a C programmer could write it. It reads
 * JSON lines, claims the number of each order, and adds to its account, with N lines in a transaction. It uses prepared
 * statements, the same durability and the same SQL. It has no guard and no recovery, and does not check keys.
 *
 * Usage: consume_by_hand DATABASE LINES_IN_A_TRANSACTION FILE */

#define _GNU_SOURCE
#include <cjson/cJSON.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static sqlite3* db;

static void fail(const char* what) {
  fprintf(stderr, "consume_by_hand: %s: %s\n", what, db == NULL ? "" : sqlite3_errmsg(db));
  exit(1);
}

static sqlite3_stmt* prepare(const char* sql) {
  sqlite3_stmt* statement;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) fail("prepare");
  return statement;
}

static void run(sqlite3_stmt* statement) {
  if (sqlite3_step(statement) != SQLITE_DONE) fail("step");
  sqlite3_reset(statement);
}

static sqlite3_stmt *begin, *claim, *update, *commit;

static void consume(const char* line, size_t size) {
  cJSON* json = cJSON_ParseWithLength(line, size);
  const cJSON* number = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "order"), "no");
  const cJSON* account = cJSON_GetObjectItemCaseSensitive(json, "account");
  if (!cJSON_IsString(number) || !cJSON_IsNumber(account)) fail("no order or no account");
  sqlite3_bind_text(claim, 1, number->valuestring, -1, SQLITE_STATIC);
  run(claim);
  if (sqlite3_changes(db) == 1) {
    sqlite3_bind_int64(update, 1, (sqlite3_int64)account->valuedouble);
    run(update);
  }
  cJSON_Delete(json);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: consume_by_hand DATABASE LINES_IN_A_TRANSACTION FILE\n");
    return 2;
  }
  const long batch = atol(argv[2]);
  FILE* file = fopen(argv[3], "r");
  if (file == NULL || batch < 1) fail("cannot begin");
  if (sqlite3_open(argv[1], &db) != SQLITE_OK) fail("open");
  if (sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", NULL, NULL,
                   NULL) != SQLITE_OK) {
    fail("settings");
  }
  begin = prepare("BEGIN IMMEDIATE");
  claim = prepare(
      "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
      "VALUES ('by-hand', ?1, 'consumed', zeroblob(16)) ON CONFLICT (consumer, business_key) DO NOTHING");
  update = prepare("UPDATE bench_account SET n = n + 1 WHERE id = ?1");
  commit = prepare("COMMIT");

  char* line = NULL;
  size_t capacity = 0;
  long open = 0;
  ssize_t size;
  while ((size = getline(&line, &capacity, file)) > 0) {
    if (open == 0) run(begin);
    consume(line, (size_t)size);
    if (++open == batch) {
      run(commit);
      open = 0;
    }
  }
  if (open > 0) run(commit);
  free(line);
  fclose(file);
  sqlite3_finalize(begin);
  sqlite3_finalize(claim);
  sqlite3_finalize(update);
  sqlite3_finalize(commit);
  sqlite3_close(db);
  return 0;
}
