#pragma once

// The SQL that a user of the command has written: how a database parses it, and how it runs it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <txinbox/error.hpp>

#include "backend/native_connection.hpp"

namespace txinbox::cli {

/// How a session parses SQL. A program must know this to split a text into statements and to find the placeholders.
struct SqlSyntax {
  bool backslash_escapes = false;   ///< A backslash escapes a character in '…', and in "…" if that is text.
  bool double_quoted_text = false;  ///< "…" is text. Otherwise it is a name.
  bool backquoted_names = false;    ///< `…` is a name.
  bool bracketed_names = false;     ///< […] is a name.
  bool escape_text = false;         ///< E'…' is text with backslash escapes.
  bool dollar_quotes = false;       ///< $$…$$ and $tag$…$tag$ are text, and $1 is a placeholder.
  bool nested_comments = false;     ///< A comment may contain comments.
  bool hash_comments = false;       ///< # begins a comment.
  bool dashes_need_space = false;   ///< -- begins a comment only before white space: a--1 is a subtraction.
  bool code_in_comments = false;    ///< /*+ … */ and /*! … */ are code.
  bool casts = false;               ///< :: is an operator.
  bool assignments = false;         ///< := is an operator.

  /// The characters with which the database's own placeholders begin.
  std::string_view own_placeholders = {};

  friend bool operator==(const SqlSyntax&, const SqlSyntax&) = default;
};

/// The limits of a session for statements and values.
struct SqlLimits {
  std::size_t statement_bytes = 0;       ///< The longest statement with its values. 0: there is no limit.
  std::string_view statement_setting{};  ///< The name of the setting that is this limit.
  std::string_view doubled{};            ///< The characters of a value that take two bytes in the statement.
  std::string_view why_no_nul{};         ///< Why text with a NUL character cannot be sent. Empty if it can.
};

/// A number that is not a 64-bit integer, as the JSON contains it.
struct SqlNumber {
  std::string text;
};

/// A value for a statement. Each type keeps the message's value without loss.
using SqlValue = std::variant<std::monostate, bool, long long, SqlNumber, std::string>;

/// One statement with places for values.
struct SqlStatement {
  std::vector<std::string> pieces;  ///< The text of the statement. A value comes between each two pieces.
  std::vector<std::size_t> values;  ///< The index of each of these values.
};

/// A user's statement on one connection.
class UserStatement {
 public:
  virtual ~UserStatement() = default;
  UserStatement(const UserStatement&) = delete;
  UserStatement& operator=(const UserStatement&) = delete;

  /// Runs the statement, and ignores its rows. Returns whether it should be prepared again before the next run.
  ///
  /// Errors: a `DatabaseError`.
  virtual bool run(std::span<const SqlValue> values) = 0;

 protected:
  UserStatement() = default;
};

/// One run of a statement. Several runs are run together.
struct UserRun {
  UserStatement* statement;
  std::span<const SqlValue> values;
  bool prepare_anew = false;  ///< `run_together` sets it to what `UserStatement::run` would have returned.
};

/// The meaning of an error of `UserSql::check`.
enum class SqlVerdict {
  unknown,  ///< The statement cannot be checked here or now.
  dubious,  ///< The statement is wrong, or it has a value where only a run allows one.
  wrong,
};

class UserSql {
 public:
  virtual ~UserSql() = default;
  UserSql(const UserSql&) = delete;
  UserSql& operator=(const UserSql&) = delete;

  /// Returns the syntax of a session with default settings.
  virtual SqlSyntax default_syntax() const = 0;

  /// Returns the syntax of this session.
  virtual SqlSyntax syntax(const backend::NativeConnection&) const { return default_syntax(); }
  virtual SqlLimits limits(const backend::NativeConnection&) const { return {}; }

  /// Returns why a statement with these words, in upper case, cannot run in the transaction of a message. Empty if it
  /// can, as far as the words show. It is not called for the commands that end a transaction on every database.
  virtual std::string refusal(std::span<const std::string> /*words*/) const { return {}; }

  /// Makes the database parse a statement, without values and without running it.
  ///
  /// Errors: a `DatabaseError`, on which `classify_check_error` says more.
  virtual void check(const backend::NativeConnection&, const SqlStatement&) const = 0;
  virtual SqlVerdict classify_check_error(const DatabaseError&, const SqlStatement&) const noexcept = 0;

  enum class Runs { once, often };
  virtual std::unique_ptr<UserStatement> prepare(const backend::NativeConnection&, const SqlStatement&, Runs) const = 0;

  /// Returns the most bytes of statements and values that `run_together` takes. 0: this connection runs one statement
  /// after the other.
  virtual std::size_t most_together(const backend::NativeConnection&, const SqlLimits&) const { return 0; }

  /// Runs statements in this order, in one round trip if their text allows this. The statements only read or change
  /// rows. This connection has prepared them.
  ///
  /// Errors: the `DatabaseError` of the first statement that failed. Nothing shows which one that was. The statements
  ///         before it have run.
  virtual void run_together(const backend::NativeConnection&, std::span<UserRun> runs) const {
    for (UserRun& each : runs) each.prepare_anew = each.statement->run(each.values);
  }

 protected:
  UserSql() = default;
};

/// Returns how this database parses and runs a user's SQL.
const UserSql& user_sql_of(const backend::Database&);

/// The same for each database. Each is in a file of `databases`.
const UserSql& sqlite3_user_sql() noexcept;
const UserSql& mysql_user_sql() noexcept;
const UserSql& postgresql_user_sql() noexcept;

/// Returns the statement's text, with `placeholder(i)` in the place of the i-th value. i counts from 0.
template <class Placeholder>
std::string joined(const SqlStatement& statement, Placeholder&& placeholder) {
  std::string text = statement.pieces.front();
  for (std::size_t i = 0; i < statement.values.size(); ++i) {
    text += placeholder(i);
    text += statement.pieces[i + 1];
  }
  return text;
}

}  // namespace txinbox::cli
