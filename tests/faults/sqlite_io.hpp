#pragma once

#include <optional>
#include <string>
#include <vector>

namespace txinbox::test {

/// The calls with which SQLite accesses its files.
enum class Io {
  open,
  close,
  read,
  write,
  truncate,
  sync,
  file_size,
  lock,
  unlock,
  check_reserved_lock,
  file_control,
  shm_map,
  shm_lock,
  shm_unlock,
  shm_unmap,
  remove,
  access,
  full_pathname,
  current_time,
};

/// How such a call fails.
enum class Failure { io_error, disk_full, cannot_lock, short_write, cannot_open, out_of_memory };

std::string to_string(Failure);

/// The ways in which a call of this kind can fail.
const std::vector<Failure>& failures_of(Io);

/// The error code that the call returns to SQLite. None if such a call cannot fail in this way.
std::optional<int> code_of(Io, Failure);

}  // namespace txinbox::test
