#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "database.h"

static PGconn* db;

/* Ends the program if the statement failed. */
static PGresult* checked(PGresult* result) {
  if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("a statement", PQerrorMessage(db));
  return result;
}

static void run(const char* sql) { PQclear(checked(PQexec(db, sql))); }

static PGresult* run_prepared(const char* name, const char* value) {
  return checked(PQexecPrepared(db, name, 1, &value, NULL, NULL, 0));
}

void connect_to(const char* url) {
  db = PQconnectdb(url);
  if (PQstatus(db) != CONNECTION_OK) fail("connect", PQerrorMessage(db));
  PQclear(checked(PQprepare(db, "claim",
                            "INSERT INTO txinbox_consumed_message (consumer, business_key, state, attempt_token) "
                            "VALUES ('by-hand', $1, 'consumed', '00000000-0000-0000-0000-000000000000') "
                            "ON CONFLICT (consumer, business_key) DO NOTHING",
                            0, NULL)));
  PQclear(checked(PQprepare(db, "update", "UPDATE bench_account SET n = n + 1 WHERE id = $1", 0, NULL)));
}

void disconnect(void) { PQfinish(db); }

void begin(void) { run("BEGIN"); }
void commit(void) { run("COMMIT"); }

bool claim(const char* key) {
  PGresult* result = run_prepared("claim", key);
  const bool is_new = strcmp(PQcmdTuples(result), "1") == 0;
  PQclear(result);
  return is_new;
}

void update(long long account) {
  char text[24];
  snprintf(text, sizeof text, "%lld", account);
  PQclear(run_prepared("update", text));
}
