// Preloaded into a program that uses SQLite: SQL gets a function busy_once, which fails with SQLITE_BUSY the first
// time. A trigger can call it. So a statement of a handler fails as if the file were locked.

#include <sqlite3.h>

namespace {

void busy_once(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  static bool called = false;
  if (!called) sqlite3_result_error_code(context, SQLITE_BUSY);
  called = true;
}

int add_function(sqlite3* db, char** /*error*/, const sqlite3_api_routines* /*unused*/) {
  return sqlite3_create_function(db, "busy_once", 0, SQLITE_UTF8, nullptr, busy_once, nullptr, nullptr);
}

[[maybe_unused]] const int registered = sqlite3_auto_extension(reinterpret_cast<void (*)()>(add_function));

}  // namespace
