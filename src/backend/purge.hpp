#pragma once

// A batch of a purge, and what the databases share that delete rows by their keys.

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

/// A table, and which of its rows are removed.
struct PurgeTarget {
  struct Key {
    std::string_view column;
    bool is_text = true;  ///< Otherwise bytes.
  };

  std::string_view table;
  std::string_view time;     ///< The column with the time that counts as the row's age.
  std::span<const Key> key;  ///< Its primary key.
  std::string search = {};   ///< SQL: a further condition of the search; empty for none.
  std::string matches = {};  ///< SQL: which of the found rows are removed. It names the table without its schema.
};

/// One batch: it reads the `window` oldest rows after `after`, and removes up to `limit` of those that match.
struct PurgeBatch {
  const PurgeTarget& target;
  std::chrono::milliseconds older_than;
  std::size_t limit;
  std::size_t window;      ///< At least `limit`.
  std::string after = {};  ///< `PurgeReply::reached` of the batch before; empty for the first.
};

struct PurgeReply {
  std::size_t removed = 0;
  std::size_t chosen = 0;              ///< Rows that matched. Those that were not removed are locked, or have changed.
  bool end = false;                    ///< No further row is old enough.
  std::string reached;                 ///< SQL: the condition for the rows after this batch.
  std::chrono::nanoseconds waited{0};  ///< The time that was spent on waiting.
};

/// A row that a batch has read.
struct PurgeCandidate {
  std::vector<std::string> key;  ///< Bytes.
  std::string time;              ///< As text that the database compares with the column.
  bool matches = false;
};

/// "consumer, business_key".
std::string key_columns(const PurgeTarget&);

/// The SELECT of a batch. Its columns are `keys_and_time` and whether the row matches; the oldest row comes first.
std::string look_sql(const Dialect&, const PurgeBatch&, std::string_view keys_and_time);

/// The condition that a row must still meet when it is removed.
std::string removal_condition(const Dialect&, const PurgeBatch&);

/// Keeps only the rows that are to be removed, and says how far the batch has come.
PurgeReply choose(const Dialect&, const PurgeBatch&, std::vector<PurgeCandidate>&);

/// (literal, literal) of a key.
std::string key_literals(const Dialect&, const PurgeTarget&, const std::vector<std::string>& key);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
