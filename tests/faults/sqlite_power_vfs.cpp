#include "faults/sqlite_power_vfs.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace txinbox::test {
namespace {

PowerDisk disk;
sqlite3_vfs* real_vfs = nullptr;

/// An open file. A database also opens its real file, for the locks. A journal exists only on the simulated disk.
struct File {
  sqlite3_file base;
  PowerDisk::Handle content;
  bool sync_name;  ///< The file is new. Its first sync also syncs the folder, as on Unix.
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* file_of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }

int close(sqlite3_file* file) {
  File* closed = file_of(file);
  const sqlite3_io_methods* methods = closed->real()->pMethods;
  const int result = methods == nullptr ? SQLITE_OK : methods->xClose(closed->real());
  std::destroy_at(&closed->content);
  return result;
}

int read(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  const std::string& bytes = file_of(file)->content->now;
  const auto wanted = static_cast<std::size_t>(size);
  const auto at = static_cast<std::size_t>(offset);
  const std::size_t there = at < bytes.size() ? std::min(wanted, bytes.size() - at) : 0;
  std::memset(to, 0, wanted);
  if (there > 0) std::memcpy(to, bytes.data() + at, there);
  return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  disk.write(file_of(file)->content, {static_cast<const char*>(from), static_cast<std::size_t>(size)},
             static_cast<std::size_t>(offset));
  return SQLITE_OK;
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  disk.truncate(file_of(file)->content, static_cast<std::size_t>(size));
  return SQLITE_OK;
}

int sync(sqlite3_file* file, int /*flags*/) {
  disk.sync(file_of(file)->content);
  if (std::exchange(file_of(file)->sync_name, false)) disk.sync_names();
  return SQLITE_OK;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(file_of(file)->content->now.size());
  return SQLITE_OK;
}

int file_control(sqlite3_file* file, int operation, void* argument) {
  sqlite3_file* real = file_of(file)->real();
  return real->pMethods == nullptr ? SQLITE_NOTFOUND : real->pMethods->xFileControl(real, operation, argument);
}

template <auto method>
struct Real;
template <class R, class... Args, R (*sqlite3_io_methods::*method)(sqlite3_file*, Args...)>
struct Real<method> {
  static R call(sqlite3_file* file, Args... args) {
    sqlite3_file* real = file_of(file)->real();
    return (real->pMethods->*method)(real, args...);
  }
};

using M = sqlite3_io_methods;

constexpr sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close,
    .xRead = read,
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = file_size,
    .xLock = Real<&M::xLock>::call,
    .xUnlock = Real<&M::xUnlock>::call,
    .xCheckReservedLock = Real<&M::xCheckReservedLock>::call,
    .xFileControl = file_control,
    // The values of the VFS for Unix: a sector may be torn, but the bytes around a write do not change.
    .xSectorSize = [](sqlite3_file*) { return 4096; },
    .xDeviceCharacteristics = [](sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; },
    .xShmMap = Real<&M::xShmMap>::call,
    .xShmLock = Real<&M::xShmLock>::call,
    .xShmBarrier = Real<&M::xShmBarrier>::call,
    .xShmUnmap = Real<&M::xShmUnmap>::call,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  constexpr int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL;
  file->pMethods = nullptr;
  if ((flags & (SQLITE_OPEN_MAIN_DB | journals)) == 0) return SQLITE_CANTOPEN;  // no test uses other files
  File* opened = new (file) File{.base = {.pMethods = nullptr}, .content = nullptr, .sync_name = false};
  opened->real()->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
    const int result = real_vfs->xOpen(real_vfs, name, opened->real(), flags, out_flags);
    if (result != SQLITE_OK) return result;
  } else if ((flags & SQLITE_OPEN_CREATE) == 0 && !disk.exists(name)) {
    return SQLITE_CANTOPEN;
  } else if (out_flags != nullptr) {
    *out_flags = flags;
  }
  opened->content = disk.open(name);
  opened->sync_name = (flags & journals) != 0 && (flags & SQLITE_OPEN_CREATE) != 0;
  opened->base.pMethods = &methods;
  return SQLITE_OK;
}

int remove(sqlite3_vfs* /*vfs*/, const char* name, int sync_folder) {
  if (!disk.exists(name)) return SQLITE_IOERR_DELETE_NOENT;
  disk.remove(name);
  if (sync_folder != 0) disk.sync_names();
  return SQLITE_OK;
}

/// An empty file is reported as absent, as on Unix.
int access(sqlite3_vfs* /*vfs*/, const char* name, int /*flags*/, int* result) {
  *result = disk.exists(name) && !disk.open(name)->now.empty() ? 1 : 0;
  return SQLITE_OK;
}

int full_pathname(sqlite3_vfs* /*vfs*/, const char* name, int size, char* full) {
  return real_vfs->xFullPathname(real_vfs, name, size, full);
}

}  // namespace

PowerDisk& use_power_disk() {
  static sqlite3_vfs vfs;
  real_vfs = sqlite3_vfs_find("unix");
  vfs = *real_vfs;
  vfs.pNext = nullptr;
  vfs.zName = "txinbox_power";
  vfs.szOsFile += static_cast<int>(sizeof(File));
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = full_pathname;
  if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK) throw std::runtime_error("the VFS cannot be registered");
  return disk;
}

}  // namespace txinbox::test
