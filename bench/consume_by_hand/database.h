/* What the program needs of a database. Each database has a file with these functions. */

#ifndef TXINBOX_BENCH_CONSUME_BY_HAND_DATABASE_H
#define TXINBOX_BENCH_CONSUME_BY_HAND_DATABASE_H

#include <stdbool.h>

/* Ends the program with an error. */
_Noreturn void fail(const char* what, const char* why);

void connect_to(const char* url);
void disconnect(void);

void begin(void);
void commit(void);

/* Inserts the claim of a key. Returns false if the key has one. */
bool claim(const char* key);

/* The business work. */
void update(long long account);

#endif
