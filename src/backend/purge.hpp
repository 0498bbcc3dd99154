#pragma once

// What a purge asks of a database, and what those that remove rows by their keys share.

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

/// A table, and which of its rows go.
struct PurgeTarget {
  struct Key {
    std::string_view column;
    bool is_text = true;  ///< Otherwise bytes.
  };

  std::string_view table;
  std::string_view time;     ///< The column that tells a row's age.
  std::span<const Key> key;  ///< Its primary key.
  std::string search = {};   ///< SQL, next to the age; empty for none.
  std::string matches = {};  ///< SQL: which of the rows that were found go. The table's bare name stands for it.
};

/// One batch: looks at the `window` oldest rows behind `after`, and removes up to `limit` of those that match.
struct PurgeBatch {
  const PurgeTarget& target;
  std::chrono::milliseconds older_than;
  std::size_t limit;
  std::size_t window;      ///< At least `limit`.
  std::string after = {};  ///< Where the batch before has ended: `PurgeReply::reached`; empty at first.
};

struct PurgeReply {
  std::size_t removed = 0;
  std::size_t chosen = 0;              ///< Matched. Those that were not removed are locked, or have changed meanwhile.
  bool end = false;                    ///< There are no older rows behind it.
  std::string reached;                 ///< SQL: what is behind it.
  std::chrono::nanoseconds waited{0};  ///< Not worked.
};

/// A row that was looked at.
struct PurgeCandidate {
  std::vector<std::string> key;  ///< Bytes.
  std::string time;              ///< As a text that the database compares with the column.
  bool matches = false;
};

/// "consumer, business_key".
std::string key_columns(const PurgeTarget&);

/// The SELECT that looks: it gives the columns `keys_and_time` and whether the row matches, in the order of age.
std::string look_sql(const Dialect&, const PurgeBatch&, std::string_view keys_and_time);

/// The condition under which a row still goes when it is removed.
std::string removal_condition(const Dialect&, const PurgeBatch&);

/// Leaves those that go, and says how far the batch has come.
PurgeReply choose(const Dialect&, const PurgeBatch&, std::vector<PurgeCandidate>&);

/// (literal, literal) of a key.
std::string key_literals(const Dialect&, const PurgeTarget&, const std::vector<std::string>& key);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
