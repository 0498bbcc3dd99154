#include "faults/sqlite_io.hpp"

#include <sqlite3.h>

#include <map>
#include <utility>

namespace txinbox::test {
namespace {

using enum Failure;

/// The codes come from the documentation of sqlite3_io_methods and from the VFS for Unix.
const std::map<Io, std::vector<std::pair<Failure, int>>>& codes() {
  static const std::map<Io, std::vector<std::pair<Failure, int>>> all = {
      {Io::open, {{cannot_open, SQLITE_CANTOPEN}, {io_error, SQLITE_IOERR}, {out_of_memory, SQLITE_NOMEM}}},
      {Io::close, {{io_error, SQLITE_IOERR_CLOSE}}},
      {Io::read, {{io_error, SQLITE_IOERR_READ}}},
      {Io::write, {{io_error, SQLITE_IOERR_WRITE}, {disk_full, SQLITE_FULL}, {short_write, SQLITE_IOERR_WRITE}}},
      {Io::truncate, {{io_error, SQLITE_IOERR_TRUNCATE}}},
      {Io::sync, {{io_error, SQLITE_IOERR_FSYNC}}},
      {Io::file_size, {{io_error, SQLITE_IOERR_FSTAT}}},
      {Io::lock, {{cannot_lock, SQLITE_BUSY}, {io_error, SQLITE_IOERR_LOCK}}},
      {Io::unlock, {{io_error, SQLITE_IOERR_UNLOCK}}},
      {Io::check_reserved_lock, {{io_error, SQLITE_IOERR_CHECKRESERVEDLOCK}}},
      {Io::file_control, {{io_error, SQLITE_IOERR}}},
      {Io::shm_map,
       {{io_error, SQLITE_IOERR_SHMMAP}, {cannot_open, SQLITE_CANTOPEN}, {out_of_memory, SQLITE_IOERR_NOMEM}}},
      {Io::shm_lock, {{cannot_lock, SQLITE_BUSY}, {io_error, SQLITE_IOERR_SHMLOCK}}},
      {Io::shm_unlock, {{io_error, SQLITE_IOERR_SHMLOCK}}},
      {Io::shm_unmap, {{io_error, SQLITE_IOERR}}},
      {Io::remove, {{io_error, SQLITE_IOERR_DELETE}}},
      {Io::access, {{io_error, SQLITE_IOERR_ACCESS}}},
      {Io::full_pathname, {{cannot_open, SQLITE_CANTOPEN}}},
      {Io::current_time, {{io_error, SQLITE_ERROR}}},
  };
  return all;
}

}  // namespace

std::string to_string(Failure failure) {
  switch (failure) {
    case io_error:
      return "I/O error";
    case disk_full:
      return "disk full";
    case cannot_lock:
      return "cannot lock";
    case short_write:
      return "short write";
    case cannot_open:
      return "cannot open";
    case out_of_memory:
      return "out of memory";
  }
  return "";
}

const std::vector<Failure>& failures_of(Io io) {
  static const auto all = [] {
    std::map<Io, std::vector<Failure>> failures;
    for (const auto& [each, ways] : codes()) {
      for (const auto& [failure, code] : ways) failures[each].push_back(failure);
    }
    return failures;
  }();
  return all.at(io);
}

std::optional<int> code_of(Io io, Failure failure) {
  for (const auto& [way, code] : codes().at(io)) {
    if (way == failure) return code;
  }
  return std::nullopt;
}

}  // namespace txinbox::test
