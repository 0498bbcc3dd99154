/* A program that does the same as `txinbox consume --batch N`, as a C programmer could write it. It reads JSON lines,
 * claims the number of each order, and adds to its account, with N lines in a transaction. It uses prepared statements,
 * the same durability and the same SQL. It has no guard and no recovery, and does not check keys.
 *
 * Usage: TXINBOX_DB=URL consume_by_hand LINES_IN_A_TRANSACTION FILE */

#define _GNU_SOURCE
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "database.h"

void fail(const char* what, const char* why) {
  fprintf(stderr, "consume_by_hand: %s: %s\n", what, why);
  exit(1);
}

static void consume(const char* line, size_t size) {
  cJSON* json = cJSON_ParseWithLength(line, size);
  const cJSON* number = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "order"), "no");
  const cJSON* account = cJSON_GetObjectItemCaseSensitive(json, "account");
  if (!cJSON_IsString(number) || !cJSON_IsNumber(account)) fail("a line", "no order or no account");
  if (claim(number->valuestring)) update((long long)account->valuedouble);
  cJSON_Delete(json);
}

int main(int argc, char** argv) {
  const char* url = getenv("TXINBOX_DB");
  if (argc != 3 || url == NULL) {
    fprintf(stderr, "usage: TXINBOX_DB=URL consume_by_hand LINES_IN_A_TRANSACTION FILE\n");
    return 2;
  }
  const long batch = atol(argv[1]);
  FILE* file = fopen(argv[2], "r");
  if (file == NULL || batch < 1) fail("cannot begin", argv[2]);
  connect_to(url);

  char* line = NULL;
  size_t capacity = 0;
  long open = 0;
  ssize_t size;
  while ((size = getline(&line, &capacity, file)) > 0) {
    if (open == 0) begin();
    consume(line, (size_t)size);
    if (++open == batch) {
      commit();
      open = 0;
    }
  }
  if (open > 0) commit();
  free(line);
  fclose(file);
  disconnect();
  return 0;
}
