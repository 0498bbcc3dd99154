#pragma once

#include <optional>
#include <string>
#include <vector>

namespace txinbox::test {

/// The calls by which SQLite reaches its files.
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

/// A way in which such a call fails.
enum class Failure { io_error, disk_full, cannot_lock, short_write, cannot_open, out_of_memory };

std::string to_string(Failure);

/// The ways in which a call of this kind can fail.
const std::vector<Failure>& failures_of(Io);

/// What SQLite is told then; none where such a call does not fail so.
std::optional<int> code_of(Io, Failure);

}  // namespace txinbox::test
