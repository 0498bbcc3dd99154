#pragma once

#include <sqlite3.h>

#include <functional>
#include <utility>

#include "faults/sqlite_io.hpp"

namespace txinbox::test {

/// A VFS between SQLite and the default VFS. It is the default while this object exists: every connection that is
/// opened during this time uses it, and must be closed before the object is destroyed. SQLite's sleeps return at once.
class SqliteVfs {
 public:
  /// The fault of a call. A call that fails does not reach the lower VFS, unless it frees a lock or memory.
  struct Verdict {
    int code = SQLITE_OK;  ///< With another code, the call fails with this code.
    bool half = false;     ///< A write that fails writes half of the bytes first.
  };
  using Watcher = std::function<Verdict(Io)>;

  /// The fault of a sync. `drop` saves time: a sync takes long, and the power of this machine is not cut.
  enum class Syncs { drop, pass_on };

  explicit SqliteVfs(Syncs = Syncs::drop);
  ~SqliteVfs();
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;

  /// Calls `watcher` before each call from now on. If it is empty, all calls reach the lower VFS.
  void watch(Watcher watcher) { watcher_ = std::move(watcher); }

  Verdict before(Io io) const { return watcher_ ? watcher_(io) : Verdict{}; }
  sqlite3_vfs* lower() const { return lower_; }
  bool syncs() const { return syncs_ == Syncs::pass_on; }

 private:
  sqlite3_vfs* lower_;
  sqlite3_vfs self_;
  Syncs syncs_;
  Watcher watcher_;
};

}  // namespace txinbox::test
