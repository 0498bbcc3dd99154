#include "faults/sqlite_memory.hpp"

#include <sqlite3.h>

#include <stdexcept>
#include <utility>

namespace txinbox::test {
namespace {

sqlite3_mem_methods real;
std::function<bool()> may_allocate;

bool is_enough() { return !may_allocate || may_allocate(); }
void* allocate(int size) { return is_enough() ? real.xMalloc(size) : nullptr; }
void* reallocate(void* memory, int size) { return is_enough() ? real.xRealloc(memory, size) : nullptr; }

void use(const sqlite3_mem_methods& methods) {
  sqlite3_mem_methods copy = methods;
  sqlite3_shutdown();
  if (sqlite3_config(SQLITE_CONFIG_MALLOC, &copy) != SQLITE_OK) {
    throw std::runtime_error("SQLite does not accept another allocator");
  }
}

}  // namespace

SqliteMemory::SqliteMemory() {
  sqlite3_initialize();
  sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
  sqlite3_shutdown();
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) != SQLITE_OK)
    throw std::runtime_error("SQLite's allocator cannot be read");
  sqlite3_mem_methods ours = real;
  ours.xMalloc = allocate;
  ours.xRealloc = reallocate;
  use(ours);
}

SqliteMemory::~SqliteMemory() {
  may_allocate = {};
  sqlite3_shutdown();
  sqlite3_config(SQLITE_CONFIG_MALLOC, &real);
}

void SqliteMemory::watch(std::function<bool()> may) { may_allocate = std::move(may); }

}  // namespace txinbox::test
