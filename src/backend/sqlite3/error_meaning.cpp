#include "backend/sqlite3/error_meaning.hpp"

#include <sqlite3.h>

#include <array>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using enum ErrorClass;

constexpr auto meanings = std::to_array<ErrorCodeMeaning<int>>({
    {SQLITE_CONSTRAINT_PRIMARYKEY, {duplicate_key, "duplicate primary key"}},
    {SQLITE_CONSTRAINT_UNIQUE, {duplicate_key, "duplicate key"}},
    {SQLITE_CONSTRAINT_NOTNULL, {other, "NULL in a NOT NULL column"}},
    {SQLITE_CONSTRAINT_CHECK, {other, "a CHECK constraint"}},
    {SQLITE_CONSTRAINT_FOREIGNKEY, {other, "a foreign key"}},
    {SQLITE_ERROR, {other, "wrong SQL, or a table or column that is not there"}},
    {SQLITE_ABORT, {other, "aborted"}},
    {SQLITE_BUSY, {lock_timeout, "the database is locked"}},
    {SQLITE_LOCKED, {lock_timeout, "a table is locked"}},
    {SQLITE_NOMEM, {environment, "no memory"}},
    {SQLITE_READONLY, {other, "read-only"}},
    {SQLITE_INTERRUPT, {statement_timeout}},
    {SQLITE_IOERR, {environment, "disk I/O"}},
    {SQLITE_CORRUPT, {environment, "the file is corrupt"}},
    {SQLITE_FULL, {environment, "the disk is full"}},
    {SQLITE_CANTOPEN, {connection_lost, "the file cannot be opened"}},
    {SQLITE_PROTOCOL, {lock_timeout}},
    {SQLITE_TOOBIG, {other, "too big"}},
    {SQLITE_CONSTRAINT, {other, "a constraint"}},
    {SQLITE_MISMATCH, {other, "a value of the wrong type"}},
    {SQLITE_NOTADB, {environment, "not a database file"}},
});

const ErrorMeaning* meaning_of(int code) {
  return find_meaning(meanings, [code](int each) { return each == code; });
}

}  // namespace

ErrorMeaning sqlite3_meaning(int code) {
  const ErrorMeaning* found = meaning_of(code);
  if (found == nullptr) found = meaning_of(code & 0xFF);  // of an extended code, the primary one
  return found == nullptr ? ErrorMeaning() : *found;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
