#pragma once

#include <sys/types.h>

#include <memory>

#include "backend/sqlite3/native.hpp"
#include "base/process.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// The file that the pools of this process have open under one name. After it was found to be moved, its name means no
/// other file for this process.
///
/// If somebody moves the file or puts another one in its place, a connection of SQLite goes on with the old file. A new
/// connection would open the new file. It would also open the write-ahead log that the old file has left under this
/// name, and SQLite would write the old file's pages into the new one. So txinbox neither uses such a connection nor
/// opens a new one: somebody must stop the process first. (SQLite: "How To Corrupt An SQLite Database File", 1.4, 2.4.)
///
/// A child of fork() inherits what SQLite knows about the locks of its parent, and not the locks themselves. Commits of
/// the child could get lost. So the child cannot open a file that a pool of its parent had open. (The same page, 2.6.)
///
/// Any number of threads may use it.
class Sqlite3OpenFile {
 public:
  /// Returns the file of this connection. All connections to a file of this name share the object. Errors: as
  /// `refuse_moved`, also if the name meant another file when the first of these connections was opened; `Error` forked
  /// if the parent of this process had it open.
  static std::shared_ptr<Sqlite3OpenFile> of(::sqlite3*);

  /// Throws a `DatabaseError` if the connection's file is no longer the one that its name means. A database in memory
  /// has no name.
  static void refuse_moved(::sqlite3*);

 private:
  const detail::OwnProcess owner_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
