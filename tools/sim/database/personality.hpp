#pragma once

#include <array>
#include <string_view>

namespace txinbox::sim {

enum class NestedBegin { fails, is_ignored, commits };

/// The differences between the databases. docs/internals/simulation.md names the case that proves each line on the
/// real server.
struct Personality {
  std::string_view name;

  /// The database whose error codes the errors have.
  std::string_view codes;

  /// A handler's COMMIT of the guarded transaction fails, and rolls it back.
  bool refuses_commit_of_handler;

  /// The effect of BEGIN within a transaction.
  NestedBegin nested_begin;

  /// After the end of a handler's transaction, its statements are in a transaction that only the handler can commit:
  /// autocommit is off. Otherwise they fail, also after a BEGIN.
  bool begins_by_itself;

  /// BEGIN waits until no other transaction is open.
  bool has_one_writer;

  /// After an error, the transaction accepts nothing but ROLLBACK, or a rollback to a savepoint.
  bool error_aborts_transaction;

  /// After a deadlock, or a conflict with another transaction, the server has rolled the transaction back.
  bool deadlock_rolls_back;

  /// Others see a commit before it is on the disk.
  bool shows_commits_early;

  /// A conflict with another transaction shows itself only at COMMIT.
  bool conflicts_only_at_commit;

  /// A sequence numbers the rows of a table. It can be behind them.
  bool has_sequences;

  /// It shows which transactions may have inserted rows into a table.
  bool shows_writers;

  /// A lost connection looks like an error of the disk, after which `consume` does not try again.
  bool lost_is_io_error = false;

  struct Codes {
    std::string_view duplicate, deadlock, lock_timeout, lost, cannot_connect, full, aborted, refused, nested;
    std::string_view late;                 ///< Of a change by a handler whose transaction has ended.
    std::string_view conflict, read_only;  ///< Empty: it has no such error.
  } error;
};

/// These differ only in what the arguments say.
constexpr Personality mariadb_or_mysql(std::string_view name, bool shows_commits_early, bool conflicts_only_at_commit,
                                       std::string_view conflict) {
  return {.name = name,
          .codes = "mysql",
          .refuses_commit_of_handler = false,
          .nested_begin = NestedBegin::commits,
          .begins_by_itself = true,
          .has_one_writer = false,
          .error_aborts_transaction = false,
          .deadlock_rolls_back = true,
          .shows_commits_early = shows_commits_early,
          .conflicts_only_at_commit = conflicts_only_at_commit,
          .has_sequences = false,
          .shows_writers = false,
          .error = {"1062", "1213", "1205", "2013", "2003", "1114", "", "", "", "", conflict, "1290"}};
}

inline constexpr std::array personalities = {
    Personality{.name = "sqlite3",
                .codes = "sqlite3",
                .refuses_commit_of_handler = true,
                .nested_begin = NestedBegin::fails,
                .begins_by_itself = false,
                .has_one_writer = true,
                .error_aborts_transaction = false,
                .deadlock_rolls_back = false,
                .shows_commits_early = false,
                .conflicts_only_at_commit = false,
                .has_sequences = false,
                .shows_writers = false,
                .lost_is_io_error = true,
                .error = {"1555", "5", "5", "10", "14", "13", "1", "531", "1", "531", "", ""}},
    Personality{.name = "postgresql",
                .codes = "postgresql",
                .refuses_commit_of_handler = true,
                .nested_begin = NestedBegin::is_ignored,
                .begins_by_itself = false,
                .has_one_writer = false,
                .error_aborts_transaction = true,
                .deadlock_rolls_back = false,
                .shows_commits_early = false,
                .conflicts_only_at_commit = false,
                .has_sequences = true,
                .shows_writers = true,
                .error = {"23505", "40P01", "55P03", "08006", "08001", "53100", "25P02", "TXI01", "", "25006", "40001",
                          "25006"}},
    mariadb_or_mysql("mariadb", true, false, "1020"),  // without a binary log, with innodb_snapshot_isolation
    mariadb_or_mysql("mysql", false, true, "3101"),    // with group replication
};

}  // namespace txinbox::sim
