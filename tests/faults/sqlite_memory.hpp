#pragma once

#include <functional>

namespace txinbox::test {

/// Lets allocations of SQLite fail while this object exists. No connection may be open when it is constructed or
/// destroyed.
class SqliteMemory {
 public:
  SqliteMemory();
  ~SqliteMemory();
  SqliteMemory(const SqliteMemory&) = delete;
  SqliteMemory& operator=(const SqliteMemory&) = delete;

  /// Calls `may_allocate` before each allocation from now on. If the function is empty, every allocation succeeds.
  void watch(std::function<bool()> may_allocate);
};

}  // namespace txinbox::test
