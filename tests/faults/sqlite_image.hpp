#pragma once

#include <string>

#include "support/test_database.hpp"

namespace txinbox::test {

/// The file of an SQLite database, so that every case begins with the same bytes and does the same I/O.
class SqliteImage {
 public:
  /// Takes what is there, in this journal mode. No other connection may be open, neither now nor at
  /// `restore`.
  SqliteImage(const TestDatabase&, const std::string& journal_mode);

  /// Puts it back, without a journal.
  void restore() const;

 private:
  const TestDatabase& db_;
  std::string file_;
  std::string bytes_;
};

/// The file's name.
std::string sqlite_file(const TestDatabase&);

}  // namespace txinbox::test
