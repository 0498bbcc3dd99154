#include "faults/sqlite_statements.hpp"

#include <sqlite3.h>

#include <utility>

namespace txinbox::test {
namespace {

struct {
  std::function<void()> at;
  unsigned events = 0;
} point;

int at_point(unsigned, void*, void*, void*) {
  if (point.at) point.at();
  return 0;
}

int watch(sqlite3* db, char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(db, point.events, at_point, nullptr);
}

}  // namespace

void at_each_sqlite_statement(std::function<void()> at, AtStatement when) {
  sqlite3_reset_auto_extension();
  point.at = std::move(at);
  point.events = SQLITE_TRACE_STMT | (when == AtStatement::begins ? 0U : unsigned{SQLITE_TRACE_PROFILE});
  if (point.at) sqlite3_auto_extension(reinterpret_cast<void (*)()>(watch));
}

}  // namespace txinbox::test
