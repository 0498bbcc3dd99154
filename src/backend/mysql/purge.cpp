// A purge on MariaDB and MySQL. It finds the rows with plain reads, locks the rows that are free, and removes the
// locked rows. So it waits for no row, and cannot take part in a deadlock. On a server that we do not know, it may
// wait.

#include <mysqld_error.h>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

// The hint forces the primary key. On a small table the optimizer may choose a scan, and a scan would lock other rows.
constexpr auto by_key = "FORCE INDEX (PRIMARY)";

constexpr auto shortest_wait_on_mysql = "SET_VAR(innodb_lock_wait_timeout = 1)";

std::string hex_columns(const PurgeTarget& target) {
  std::string columns;
  for (const auto& each : target.key) columns += fmt::format("{}HEX({})", columns.empty() ? "" : ", ", each.column);
  return columns;
}

/// Returns the key, which is in the first columns of a row.
std::vector<std::string> key_in(const MysqlRow& row, const PurgeTarget& target) {
  std::vector<std::string> key;
  for (std::size_t i = 0; i < target.key.size(); ++i) key.push_back(detail::from_hex(row[i].value_or("")));
  return key;
}

/// Returns the condition for one row by its unique key. The server reads such a row before it plans the rest.
std::string is_key(const PurgeTarget& target, const std::vector<std::string>& key, const Dialect& dialect) {
  std::string condition;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto& [column, is_text] = target.key[i];
    condition +=
        fmt::format("{}{} = {}", i == 0 ? "" : " AND ", column, is_text ? dialect.text(key[i]) : dialect.bytes(key[i]));
  }
  return condition;
}

/// Returns the condition for these rows: a range of the primary key for each. MariaDB turns an IN with very many values
/// into a join.
std::string is_one_of(const PurgeTarget& target, const std::vector<std::vector<std::string>>& keys,
                      const Dialect& dialect) {
  constexpr std::size_t at_once = 250;
  std::string condition = "(";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % at_once != 0) {
      condition += ", ";
    } else {
      condition += fmt::format("{}({}) IN (", i == 0 ? "" : ") OR ", key_columns(target));
    }
    condition += key_literals(dialect, target, keys[i]);
  }
  return condition += "))";
}

/// Returns a DELETE for a server with MySQL's hints. It looks up the keys one by one. With the same keys in an IN,
/// MySQL reads all rows of a small table, and the hint has no effect. The table has no alias, because the condition
/// uses its name.
std::string delete_by_key(const PurgeBatch& batch, const std::string& table,
                          const std::vector<std::vector<std::string>>& keys, const Dialect& dialect) {
  const PurgeTarget& target = batch.target;
  std::string rows;
  for (const auto& key : keys) {
    rows += fmt::format("{}ROW{}", rows.empty() ? "" : ", ", key_literals(dialect, target, key));
  }
  std::string is_wanted;
  for (std::size_t i = 0; i < target.key.size(); ++i) {
    is_wanted +=
        fmt::format("{}{}.{} = wanted.column_{}", i == 0 ? "" : " AND ", target.table, target.key[i].column, i);
  }
  return fmt::format("DELETE /*+ {} NO_BNL() */ {} FROM (VALUES {}) AS wanted STRAIGHT_JOIN {} AS {} {} ON {} WHERE {}",
                     shortest_wait_on_mysql, target.table, rows, table, target.table, by_key, is_wanted,
                     removal_condition(dialect, batch));
}

/// Returns the beginning of a DELETE that waits for as short a time as the server allows. The form with two tables
/// accepts hints.
std::string quick_delete(const Flavour& flavour, const std::string& table) {
  if (flavour.set_statement) {
    return fmt::format("SET STATEMENT innodb_lock_wait_timeout = 0 FOR DELETE {0} FROM {0}", table);
  }
  if (flavour.optimizer_hints) return fmt::format("DELETE /*+ {1} */ {0} FROM {0}", table, shortest_wait_on_mysql);
  return "DELETE FROM " + table;
}

std::string delete_all(const Flavour& flavour, const PurgeBatch& batch, const std::string& table,
                       const std::vector<std::vector<std::string>>& keys, const Dialect& dialect) {
  if (flavour.optimizer_hints) return delete_by_key(batch, table, keys, dialect);
  return fmt::format("{}{} WHERE {} AND {}", quick_delete(flavour, table),
                     flavour.set_statement ? fmt::format(" {}", by_key) : "", is_one_of(batch.target, keys, dialect),
                     removal_condition(dialect, batch));
}

}  // namespace

PurgeReply MysqlSession::purge_some(const PurgeBatch& batch) {
  MYSQL* db = connection();
  const PurgeTarget& target = batch.target;
  std::vector<PurgeCandidate> candidates;
  for (const MysqlRow& row : query_rows(db, look_sql(dialect(), batch,
                                                     fmt::format("{}, DATE_FORMAT({}, '%Y-%m-%d %H:%i:%s.%f')",
                                                                 hex_columns(target), target.time)))) {
    const std::size_t keys = target.key.size();
    candidates.push_back({key_in(row, target), row[keys].value_or(""), row[keys + 1] == "1"});
  }
  if (!pooled_ && !autocommit_) exec(db, "COMMIT");
  PurgeReply reply = choose(dialect(), batch, candidates);
  if (!candidates.empty()) reply.removed = remove_old(batch, candidates);
  return reply;
}

std::size_t MysqlSession::remove_old(const PurgeBatch& batch, const std::vector<PurgeCandidate>& candidates) {
  MYSQL* db = connection();
  const PurgeTarget& target = batch.target;
  const std::string table = dialect().table(target.table);
  std::vector<std::vector<std::string>> keys;
  keys.reserve(candidates.size());
  for (const PurgeCandidate& each : candidates) keys.push_back(each.key);

  // READ COMMITTED locks no gaps, so other transactions can insert.
  exec(db, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
  exec(db, "START TRANSACTION");
  try {
    const auto locked =
        query_rows(db, fmt::format("SELECT {} FROM {} {} WHERE {} AND {} LIMIT {} FOR UPDATE {}", hex_columns(target),
                                   table, by_key, is_one_of(target, keys, dialect()),
                                   removal_condition(dialect(), batch), keys.size(), flavour_.when_locked));
    keys.clear();
    for (const MysqlRow& row : locked) keys.push_back(key_in(row, target));
    const std::size_t removed = keys.empty() ? 0 : remove_locked(batch, table, keys);
    exec(db, "COMMIT");
    return removed;
  } catch (...) {
    try_exec(db, "ROLLBACK");
    throw;
  }
}

/// Removes the locked rows. It checks their age and state again, because a key may have been claimed again before the
/// lock. This statement must not wait either: on a small table the optimizer may read all rows in spite of the hint,
/// and another session's read may have locked an entry of the other index. If it would have to wait, it removes the
/// rows one by one. MySQL waits for at least a second, and a server that we do not know waits longer, so two purges
/// could deadlock.
std::size_t MysqlSession::remove_locked(const PurgeBatch& batch, const std::string& table,
                                        const std::vector<std::vector<std::string>>& keys) {
  MYSQL* db = connection();
  const auto is_locked = [](unsigned error) { return error == ER_LOCK_WAIT_TIMEOUT; };
  unsigned error = try_exec(db, delete_all(flavour_, batch, table, keys, dialect()));
  if (error == 0) return static_cast<std::size_t>(mysql_affected_rows(db));
  if (!is_locked(error)) throw_mysql_error(db);

  std::size_t removed = 0;
  for (const auto& key : keys) {
    // If innodb_rollback_on_timeout is set, the server has released the locks.
    error = try_exec(db, fmt::format("{} WHERE {} AND {}", quick_delete(flavour_, table),
                                     is_key(batch.target, key, dialect()), removal_condition(dialect(), batch)));
    if (error == 0) {
      removed += static_cast<std::size_t>(mysql_affected_rows(db));
    } else if (!is_locked(error)) {
      throw_mysql_error(db);
    }
  }
  return removed;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
