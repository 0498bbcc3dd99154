#pragma once

#include <string>

#include "support/test_database.hpp"

namespace txinbox::test {

/// A copy of an SQLite database file. With it, every case begins with the same bytes and does the same I/O.
class SqliteImage {
 public:
  /// Copies the database in this journal mode. No other connection may be open, neither now nor during `restore`.
  SqliteImage(const TestDatabase&, const std::string& journal_mode);

  /// Writes the copy back, and removes the journals.
  void restore() const;

 private:
  const TestDatabase& db_;
  std::string file_;
  std::string bytes_;
};

/// The name of the database's file.
std::string sqlite_file(const TestDatabase&);

}  // namespace txinbox::test
