#pragma once

#include <string>

#include <soci/soci.h>

#include "support/test_database.hpp"

namespace txinbox::test {

/// Which tables an old library has left.
enum class OldSchema { version_1, before_0_1_0 };

/// The file with the migrations of this database before 0.1.0, one after the other.
std::string file_before_0_1_0();

/// The script that upgrades their tables.
std::string upgrade_file();

/// A database as an older txinbox left it. It has that version's tables, the table of effects, and `old_rows` rows as
/// that version wrote them.
class OldDatabase : public TestDatabase {
 public:
  static constexpr int consumers = 5;
  static constexpr int rows_each = 2'000;
  static constexpr int old_rows = consumers * rows_each;

  explicit OldDatabase(OldSchema);

  /// The state of an old row. Every tenth row is torn, and another tenth is parked.
  enum class Kind { plain, with_content, torn, parked };
  static Kind kind_of(int row);
  static std::string consumer(int number) { return "old" + std::to_string(number); }
  static std::string key(int row) { return "old key " + std::to_string(row); }
  static std::string content(int row) { return "amount " + std::to_string(row); }
  static std::string result(int row) { return "receipt " + std::to_string(row); }

  /// The contents of all old rows, as text.
  std::string old_contents() const;

 private:
  void fill() const;
};

/// Consumes a message like a txinbox of schema version 1: one transaction with an insert of the columns of V1, and one
/// row in the table of effects. It runs again after a transient error.
///
/// @return whether it took effect. False: a duplicate, whose row must be `consumed`.
bool consume_as_v1(soci::session& sql, const std::string& consumer, const std::string& key);

}  // namespace txinbox::test
