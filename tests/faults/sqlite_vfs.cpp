#include "faults/sqlite_vfs.hpp"

#include <new>
#include <stdexcept>

namespace txinbox::test {
namespace {

/// Our file. The file of the lower VFS, which does the work, is behind it in memory.
struct File {
  sqlite3_file base;
  const SqliteVfs* vfs;

  sqlite3_file* lower() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* file_of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
const SqliteVfs& vfs_of(sqlite3_vfs* vfs) { return *static_cast<const SqliteVfs*>(vfs->pAppData); }

/// A method of a file. It asks the watcher, and then calls the lower file.
template <Io io, auto method>
struct Forward;
template <Io io, class... Args, int (*sqlite3_io_methods::*method)(sqlite3_file*, Args...)>
struct Forward<io, method> {
  static int call(sqlite3_file* file, Args... args) {
    if (const int code = file_of(file)->vfs->before(io).code; code != SQLITE_OK) return code;
    sqlite3_file* lower = file_of(file)->lower();
    return (lower->pMethods->*method)(lower, args...);
  }
};

/// A method that frees a lock or memory. It always calls the lower file, even if it reports an error: SQLite ignores
/// the result, and would not free the lock or the memory later.
template <Io io, auto method>
struct Release;
template <Io io, class... Args, int (*sqlite3_io_methods::*method)(sqlite3_file*, Args...)>
struct Release<io, method> {
  static int call(sqlite3_file* file, Args... args) {
    const int code = file_of(file)->vfs->before(io).code;
    sqlite3_file* lower = file_of(file)->lower();
    const int done = (lower->pMethods->*method)(lower, args...);
    return code != SQLITE_OK ? code : done;
  }
};

/// A method of the VFS. It asks the watcher, and then calls the lower VFS.
template <Io io, auto method>
struct ForwardVfs;
template <Io io, class... Args, int (*sqlite3_vfs::*method)(sqlite3_vfs*, Args...)>
struct ForwardVfs<io, method> {
  static int call(sqlite3_vfs* vfs, Args... args) {
    if (const int code = vfs_of(vfs).before(io).code; code != SQLITE_OK) return code;
    return (vfs_of(vfs).lower()->*method)(vfs_of(vfs).lower(), args...);
  }
};

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 offset) {
  const SqliteVfs::Verdict verdict = file_of(file)->vfs->before(Io::write);
  if (verdict.code != SQLITE_OK && !verdict.half) return verdict.code;
  sqlite3_file* lower = file_of(file)->lower();
  const int done = lower->pMethods->xWrite(lower, bytes, verdict.half ? size / 2 : size, offset);
  return verdict.half ? verdict.code : done;
}

int sync(sqlite3_file* file, int flags) {
  if (file_of(file)->vfs->syncs()) return Forward<Io::sync, &sqlite3_io_methods::xSync>::call(file, flags);
  return file_of(file)->vfs->before(Io::sync).code;
}

int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  return (flags & SQLITE_SHM_UNLOCK) != 0
             ? Release<Io::shm_unlock, &sqlite3_io_methods::xShmLock>::call(file, offset, n, flags)
             : Forward<Io::shm_lock, &sqlite3_io_methods::xShmLock>::call(file, offset, n, flags);
}

int sector_size(sqlite3_file* file) {
  sqlite3_file* lower = file_of(file)->lower();
  return lower->pMethods->xSectorSize(lower);
}

int characteristics(sqlite3_file* file) {
  sqlite3_file* lower = file_of(file)->lower();
  return lower->pMethods->xDeviceCharacteristics(lower);
}

void shm_barrier(sqlite3_file* file) {
  sqlite3_file* lower = file_of(file)->lower();
  lower->pMethods->xShmBarrier(lower);
}

using M = sqlite3_io_methods;

/// Version 2 has no memory-mapped files. By default, SQLite does not use them.
constexpr sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = Release<Io::close, &M::xClose>::call,
    .xRead = Forward<Io::read, &M::xRead>::call,
    .xWrite = write,
    .xTruncate = Forward<Io::truncate, &M::xTruncate>::call,
    .xSync = sync,
    .xFileSize = Forward<Io::file_size, &M::xFileSize>::call,
    .xLock = Forward<Io::lock, &M::xLock>::call,
    .xUnlock = Release<Io::unlock, &M::xUnlock>::call,
    .xCheckReservedLock = Forward<Io::check_reserved_lock, &M::xCheckReservedLock>::call,
    .xFileControl = Forward<Io::file_control, &M::xFileControl>::call,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = Forward<Io::shm_map, &M::xShmMap>::call,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = Release<Io::shm_unmap, &M::xShmUnmap>::call,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  File* opened = new (file) File{.base = {.pMethods = nullptr}, .vfs = &vfs_of(vfs)};
  if (const int code = opened->vfs->before(Io::open).code; code != SQLITE_OK) return code;
  sqlite3_vfs* lower = opened->vfs->lower();
  const int result = lower->xOpen(lower, name, opened->lower(), flags, out_flags);
  if (opened->lower()->pMethods != nullptr) opened->base.pMethods = &methods;
  return result;
}

int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  const int sync = vfs_of(vfs).syncs() ? sync_folder : 0;
  return ForwardVfs<Io::remove, &sqlite3_vfs::xDelete>::call(vfs, name, sync);
}

int wait(sqlite3_vfs* /*vfs*/, int microseconds) { return microseconds; }

}  // namespace

SqliteVfs::SqliteVfs(Syncs syncs) : lower_(sqlite3_vfs_find(nullptr)), self_(*lower_), syncs_(syncs) {
  self_.pNext = nullptr;
  self_.zName = "txinbox_test";
  self_.pAppData = this;
  self_.szOsFile += static_cast<int>(sizeof(File));
  self_.xOpen = open;
  self_.xDelete = remove;
  self_.xAccess = ForwardVfs<Io::access, &sqlite3_vfs::xAccess>::call;
  self_.xFullPathname = ForwardVfs<Io::full_pathname, &sqlite3_vfs::xFullPathname>::call;
  self_.xSleep = wait;
  self_.xCurrentTimeInt64 = ForwardVfs<Io::current_time, &sqlite3_vfs::xCurrentTimeInt64>::call;
  if (sqlite3_vfs_register(&self_, 1) != SQLITE_OK) throw std::runtime_error("the VFS cannot be registered");
}

SqliteVfs::~SqliteVfs() {
  sqlite3_vfs_unregister(&self_);
  sqlite3_vfs_register(lower_, 1);
}

}  // namespace txinbox::test
