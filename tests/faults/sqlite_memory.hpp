#pragma once

#include <functional>

namespace txinbox::test {

/// SQLite's memory, of which there may be too little, for as long as this lives. No connection may be open
/// when that begins or ends.
class SqliteMemory {
 public:
  SqliteMemory();
  ~SqliteMemory();
  SqliteMemory(const SqliteMemory&) = delete;
  SqliteMemory& operator=(const SqliteMemory&) = delete;

  /// Asks before each allocation from now on; an empty one: there is enough for all.
  void watch(std::function<bool()> may_allocate);
};

}  // namespace txinbox::test
