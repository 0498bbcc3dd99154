#pragma once

// The server of a simulated database: its tables, transactions and locks. It has no thread: the threads that call it do
// its work.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/database/personality.hpp"
#include "sim/database/value.hpp"
#include "sim/threads.hpp"

namespace txinbox::sim {

/// An error that the server sends to the client.
class ServerError : public std::runtime_error {
 public:
  explicit ServerError(std::string_view code) : std::runtime_error(std::string(code)) {}
};

/// A row has changed while the statement waited for its lock. The client's layer undoes the statement and runs it
/// again, as PostgreSQL, MariaDB and MySQL do at READ COMMITTED.
class RowChanged : public std::exception {};

/// The columns of a table, as its migration says.
struct TableDefinition {
  std::string name;
  std::vector<std::string> columns = {};
  std::vector<std::vector<std::size_t>> indexes = {};  ///< All of them, the primary key first.
  std::size_t unique_indexes = 0;                      ///< How many of them are unique. They are the first ones.
  std::optional<std::size_t> number = {};              ///< The column that the server numbers.
  std::map<std::size_t, std::string> defaults = {};    ///< SQL.
};

class Transaction;

/// The row, or none if it does not exist.
using Version = std::optional<Values>;

struct StoredRow {
  Version committed;
  Version pending;                ///< The version that `writer` has written.
  Transaction* writer = nullptr;  ///< It has the lock of the row.
  std::uint64_t commit = 0;       ///< The number of the commit that has written `committed`.

  const Version& seen_by(const Transaction* transaction) const noexcept {
    return writer != nullptr && writer == transaction ? pending : committed;
  }
};

/// Of the values of a column, both included.
struct Bounds {
  std::optional<Value> from = {};
  std::optional<Value> to = {};
};

class Table {
 public:
  explicit Table(TableDefinition definition)
      : definition_(std::move(definition)), places_(definition_.indexes.size()) {}

  const TableDefinition& definition() const noexcept { return definition_; }

  /// Null if there is no such row any more.
  StoredRow* row(std::int64_t number) const noexcept { return rows_[static_cast<std::size_t>(number)].get(); }
  /// Errors: `std::out_of_range` if there is no such row.
  StoredRow& existing_row(std::int64_t number) const {
    StoredRow* const found = row(number);
    if (found == nullptr) throw std::out_of_range("an index has a row that is gone");
    return *found;
  }

  /// The rows that have, or will have, these values in the first columns of the index, and a value between the bounds
  /// in the next column, in the order of their numbers.
  std::vector<std::int64_t> find(std::size_t index, const Values& prefix, const Bounds& = {}) const;

  /// Those of them that the transaction sees, in the order of the index.
  std::vector<std::int64_t> find_in_order(std::size_t index, const Values& prefix, const Bounds&,
                                          const Transaction*) const;

  /// Adds a row without a version, and returns its number.
  std::int64_t add();

  /// The row, without a version if it has gone.
  StoredRow& row_or_new(std::int64_t number);
  void put_in_indexes(std::int64_t row, const Values&);

  /// Removes the places in the indexes that no version of the row has any more, and the row if it has no version.
  void clean(std::int64_t row, const Version& former);

  std::int64_t next_number() noexcept { return ++last_number_; }
  void use_number(std::int64_t number) noexcept { last_number_ = std::max(last_number_, number); }

  /// As a sequence that was not replicated with the rows. Returns false if no number was given yet.
  bool set_number_back(std::int64_t numbers) noexcept {
    const std::int64_t before = std::exchange(last_number_, std::max<std::int64_t>(0, last_number_ - numbers));
    return last_number_ < before;
  }

  /// Gives the numbers after the last committed row again.
  void reuse_numbers() noexcept;

 private:
  void for_each_place(std::size_t index, const Values& prefix, const Bounds&,
                      const std::function<void(const std::string& place, std::int64_t row)>&) const;
  std::string place_of(std::size_t index, const Values&) const;
  bool has_place(const StoredRow&, std::size_t index, const std::string& place) const;

  TableDefinition definition_;
  std::vector<std::unique_ptr<StoredRow>> rows_ =
      std::vector<std::unique_ptr<StoredRow>>(1);  ///< None has the number 0.
  std::vector<std::multimap<std::string, std::int64_t>> places_;
  std::int64_t last_number_ = 0;
};

class Transaction {
 public:
  explicit Transaction(std::chrono::milliseconds its_lock_timeout) : lock_timeout(its_lock_timeout) {}

  const std::chrono::milliseconds lock_timeout;
  const std::uint64_t name = ++last_name_;  ///< No other transaction of the world has it.
  bool is_aborted = false;                  ///< Only ROLLBACK is accepted.
  bool is_guarded = false;                  ///< txinbox has begun it.

  /// Whether it has written to the table, or waits to do so.
  bool has_used(const Table* table) const noexcept { return std::ranges::find(tables_, table) != tables_.end(); }

 private:
  friend class Store;
  static inline std::uint64_t last_name_ = 0;
  struct Change {
    Table* table;
    std::int64_t row;
    Version before;
    bool has_locked;  ///< This change has taken the lock of the row.
  };
  std::vector<Change> changes_;
  std::vector<std::pair<std::string, std::size_t>> savepoints_;
  std::vector<const Table*> tables_;
  const Transaction* waits_for_ = nullptr;
};

/// How old the commits are at most that `Store::fail_over` can lose.
inline constexpr std::chrono::milliseconds longest_loss = std::chrono::seconds(60);

/// A row as a commit that was lost has left it.
struct LostRow {
  const Table* table;
  Values values;
};

class Store {
 public:
  Store(const Personality& personality, const std::vector<TableDefinition>& tables);

  const Personality& personality() const noexcept { return personality_; }

  /// Null if there is no table of this name.
  Table* find_table(std::string_view name) noexcept;

  /// Errors: `ServerError` lock_timeout, with one writer.
  std::shared_ptr<Transaction> begin(std::chrono::milliseconds lock_timeout);

  /// The others see what it has changed. Returns the number of the commit, for `flush`. 0 if it has changed nothing.
  std::uint64_t commit(Transaction&);

  /// Writes this commit, and all before it, to the disk. Until then, a crash loses it.
  void flush(std::uint64_t commit) noexcept { durable_ = std::max(durable_, commit); }

  /// The version of the row that a crash cannot lose.
  const Version& durable_version(const Table&, std::int64_t row) const;

  void roll_back(Transaction&) noexcept;

  void set_savepoint(Transaction&, const std::string& name);
  /// These return false if there is no savepoint of this name.
  bool release_savepoint(Transaction&, const std::string& name);
  bool roll_back_to_savepoint(Transaction&, const std::string& name);

  /// The number of changes, for `undo_since`.
  static std::size_t changes(const Transaction& transaction) noexcept { return transaction.changes_.size(); }
  void undo_since(Transaction&, std::size_t changes) noexcept;

  /// The behaviour of an INSERT if a row has the same key.
  enum class OnDuplicate { fail, ignore, replace };

  /// These change one row. `insert` returns false if it has ignored a duplicate.
  ///
  /// Errors: `ServerError` duplicate, deadlock, lock_timeout. `RowChanged`.
  bool insert(Transaction&, Table&, Values, OnDuplicate);
  void update(Transaction&, Table&, std::int64_t row, Values);
  void remove(Transaction&, Table&, std::int64_t row);

  /// Rolls back what is open, and loses the commits that are not on the disk.
  void crash() noexcept;

  /// Another server takes over, which lacks the commits since this time. It gives their numbers again.
  std::vector<LostRow> fail_over(SimTime since);

  /// The open transactions, for `Dialect::open_writers`.
  const std::vector<Transaction*>& open() const noexcept { return open_; }

  /// The number of the running server. It grows with each start.
  std::int64_t server_number() const noexcept { return server_number_; }

  /// The server's time in UTC, plus `later`: "YYYY-MM-DD HH:MM:SS.ffffff".
  std::string now_text(std::chrono::milliseconds later = {}) const;

  /// The whole milliseconds since `text`, which has this form.
  std::chrono::milliseconds since(const std::string& text) const;

  /// How much the server's clock is ahead of the right time.
  SimTime clock_error{0};

  /// By which share it is too fast. Less than zero: too slow.
  double drift = 0;

  /// Puts a committed row into a table, as a restored backup does.
  void load(Table&, Values);

 private:
  void change(Transaction&, Table&, std::int64_t row, Version);
  void write(Transaction&, Table&, std::int64_t row, Version);
  void wait_for_writer(Transaction&, const StoredRow&);
  void wait_for(Transaction&, const Transaction& other);

  struct Committed {
    std::uint64_t number;
    SimTime time;
    struct Row {
      Table* table;
      std::int64_t row;
      Version before;
      std::uint64_t commit_before;
    };
    std::vector<Row> rows = {};
  };
  std::vector<LostRow> undo(const Committed&);
  std::vector<LostRow> undo_commits(const std::function<bool(const Committed&)>& is_lost);

  const Personality& personality_;
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables_;
  std::vector<Transaction*> open_;
  std::deque<Committed> commits_;  ///< The last ones.
  std::uint64_t last_commit_ = 0;
  std::uint64_t durable_ = 0;
  std::int64_t server_number_ = 1;
};

}  // namespace txinbox::sim
