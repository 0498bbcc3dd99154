#pragma once

// A batch of a purge, and the functions for the databases that delete rows by their keys.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/version.hpp>

#include "backend/dialect.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// A table, and the conditions for the rows that a purge removes.
struct PurgeTarget {
  struct Key {
    std::string_view column;
    bool is_text = true;  ///< False: the column has bytes.
  };

  std::string_view table;
  std::string_view time;     ///< The column whose time counts as the row's age.
  std::span<const Key> key;  ///< The primary key of the table.
  std::string search = {};   ///< SQL: one more condition of the search. Empty if there is none.
  std::string matches = {};  ///< SQL: the condition for removing a row that was found. It names the table without its
                             ///< schema.
};

/// One batch. It reads the `window` oldest rows after `after`, and removes at most `limit` of the rows that match.
struct PurgeBatch {
  const PurgeTarget& target;
  std::chrono::milliseconds older_than;
  std::size_t limit;
  std::size_t window;      ///< At least `limit`.
  std::string after = {};  ///< `PurgeReply::reached` of the previous batch. Empty for the first batch.
};

struct PurgeReply {
  std::size_t removed = 0;
  std::size_t chosen = 0;              ///< The rows that matched. Some may stay: they are locked, or they have changed.
  bool end = false;                    ///< No more rows are old enough.
  std::string reached;                 ///< SQL: the condition for the rows after this batch.
  std::chrono::nanoseconds waited{0};  ///< The time that the batch spent waiting.
};

/// A row that a batch has read.
struct PurgeCandidate {
  std::vector<std::string> key;  ///< The value of each key column, as bytes.
  std::string time;              ///< A text that the database can compare with the column.
  bool matches = false;
};

/// Returns the names of the key columns, such as "consumer, business_key".
std::string key_columns(const PurgeTarget&);

/// Returns the SELECT of a batch. It returns `keys_and_time`, and then whether the row matches. The oldest row comes
/// first.
std::string look_sql(const Dialect&, const PurgeBatch&, std::string_view keys_and_time);

/// Returns the condition that a row must still meet at its removal.
std::string removal_condition(const Dialect&, const PurgeBatch&);

/// Keeps only the rows that must be removed. Returns how far the batch has come.
PurgeReply choose(const Dialect&, const PurgeBatch&, std::vector<PurgeCandidate>&);

/// Returns the literals of a key in the form (literal, literal).
std::string key_literals(const Dialect&, const PurgeTarget&, const std::vector<std::string>& key);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
