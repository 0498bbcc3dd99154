#include "backend/sqlite3/open_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "backend/database_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

struct OpenFiles {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Sqlite3OpenFile>, std::less<>> by_name;
  std::vector<std::shared_ptr<Sqlite3OpenFile>> moved;  ///< These stay in `by_name`.
};

OpenFiles& open_files() {
  static OpenFiles files;
  return files;
}

std::string name_of(::sqlite3* connection) {
  const char* name = sqlite3_db_filename(connection, "main");
  return name == nullptr ? std::string() : name;
}

[[noreturn]] void throw_moved(::sqlite3* connection) {
  throw_database_error(
      sqlite3_name, connection, std::to_string(SQLITE_READONLY_DBMOVED),
      "txinbox: the database file was moved or replaced while this process had it open; stop the process, move the "
      "files FILE-wal and FILE-shm of the old database away from the new one, then start the process again");
}

}  // namespace

std::shared_ptr<Sqlite3OpenFile> Sqlite3OpenFile::of(::sqlite3* connection) {
  const std::string name = name_of(connection);
  struct stat status = {};
  if (name.empty() || stat(name.c_str(), &status) != 0) return nullptr;

  OpenFiles& files = open_files();
  const std::lock_guard lock(files.mutex);
  std::erase_if(files.by_name, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = files.by_name[name];
  auto file = entry.lock();
  if (!file) {
    file = std::make_shared<Sqlite3OpenFile>();
    file->device_ = status.st_dev;
    file->inode_ = status.st_ino;
    entry = file;
  }
  if (!file->owner_.is_this_one()) {
    throw Error(ErrorCode::forked,
                "a pool of the parent process had this file of SQLite open at fork(); close the parent's pools on it "
                "before fork(), or let the child exec another program");
  }
  if (file->device_ != status.st_dev || file->inode_ != status.st_ino) throw_moved(connection);
  return file;
}

void Sqlite3OpenFile::refuse_moved(::sqlite3* connection) {
  int moved = 0;
  if (sqlite3_file_control(connection, "main", SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved == 0) return;
  {
    OpenFiles& files = open_files();
    const std::lock_guard lock(files.mutex);
    const auto entry = files.by_name.find(name_of(connection));
    if (auto file = entry == files.by_name.end() ? nullptr : entry->second.lock()) {
      if (std::ranges::find(files.moved, file) == files.moved.end()) files.moved.push_back(std::move(file));
    }
  }
  throw_moved(connection);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
