#pragma once

#include <sqlite3.h>

#include <functional>
#include <utility>

#include "faults/sqlite_io.hpp"

namespace txinbox::test {

/// Stands between SQLite and the VFS that was the default, as the default, for as long as it lives: every
/// connection that is opened meanwhile uses it, and must be closed before. Nothing waits.
class SqliteVfs {
 public:
  /// What becomes of a call.
  struct Verdict {
    int code = SQLITE_OK;  ///< Anything else: it fails with that, and is not passed on.
    bool half = false;     ///< A write that fails: after half of the bytes.
  };
  using Watcher = std::function<Verdict(Io)>;

  /// What becomes of a sync. It takes long, and this machine's power is not cut.
  enum class Syncs { drop, pass_on };

  explicit SqliteVfs(Syncs = Syncs::drop);
  ~SqliteVfs();
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;

  /// Asks `watcher` before each call from now on; an empty one: passes all of them on.
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
