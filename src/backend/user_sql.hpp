#pragma once

// The SQL that a user of the command has written: how a database reads it, and how it runs it.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <txinbox/database_error.hpp>
#include <txinbox/version.hpp>

#include "backend/native_connection.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// How a session reads SQL: what a program must know that splits a text into statements and finds the placeholders.
struct SqlSyntax {
  bool backslash_escapes = false;   ///< In '…', and in "…" if that is text.
  bool double_quoted_text = false;  ///< "…" is text. Otherwise it is a name.
  bool backquoted_names = false;    ///< `…` is a name.
  bool bracketed_names = false;     ///< […] is a name.
  bool escape_text = false;         ///< E'…' is text with backslash escapes.
  bool dollar_quotes = false;       ///< $$…$$ and $tag$…$tag$ are text, and $1 is a placeholder.
  bool nested_comments = false;     ///< A comment may hold comments.
  bool hash_comments = false;       ///< # begins a comment.
  bool dashes_need_space = false;   ///< -- begins a comment only before white space: a--1 is a subtraction.
  bool code_in_comments = false;    ///< /*+ … */ and /*! … */ are not comments.
  bool casts = false;               ///< :: is an operator.
  bool assignments = false;         ///< := is an operator.

  /// The characters that begin a placeholder of the database's own.
  std::string_view own_placeholders = {};

  friend bool operator==(const SqlSyntax&, const SqlSyntax&) = default;
};

/// What a session does not take.
struct SqlLimits {
  std::size_t statement_bytes = 0;       ///< The longest statement with its values; 0: no limit.
  std::string_view statement_setting{};  ///< The setting that says so.
  std::string_view doubled{};            ///< The characters of a value that take two bytes in such a statement.
  std::string_view why_no_nul{};         ///< Why text with a NUL character cannot be sent; empty: it can.
};

/// A number that is no integer of 64 bits, as it was written in JSON.
struct SqlNumber {
  std::string text;
};

/// A value for a statement; none of the types loses anything of what the message said.
using SqlValue = std::variant<std::monostate, bool, long long, SqlNumber, std::string>;

/// One statement with places for values.
struct SqlStatement {
  std::vector<std::string> pieces;  ///< Its text. Between each two pieces stands a value.
  std::vector<std::size_t> values;  ///< Which of the values that is.
};

/// A statement of the user's on one connection.
class UserStatement {
 public:
  virtual ~UserStatement() = default;
  UserStatement(const UserStatement&) = delete;
  UserStatement& operator=(const UserStatement&) = delete;

  /// Runs it, and drops its rows. Returns whether it should be prepared anew for the next run.
  ///
  /// Errors: a `DatabaseError`.
  virtual bool run(std::span<const SqlValue> values) = 0;

 protected:
  UserStatement() = default;
};

/// One run of a statement among those that run together.
struct UserRun {
  UserStatement* statement;
  std::span<const SqlValue> values;
  bool prepare_anew = false;  ///< What `UserStatement::run` would have returned; `run_together` sets it.
};

/// What an error of `UserSql::check` says.
enum class SqlVerdict {
  unknown,  ///< The statement cannot be checked here or now.
  dubious,  ///< It is wrong, or it has a value where only a run allows one.
  wrong,
};

class UserSql {
 public:
  virtual ~UserSql() = default;
  UserSql(const UserSql&) = delete;
  UserSql& operator=(const UserSql&) = delete;

  /// Of a session that nobody has configured.
  virtual SqlSyntax default_syntax() const = 0;

  /// Of this session.
  virtual SqlSyntax syntax(const NativeConnection&) const { return default_syntax(); }
  virtual SqlLimits limits(const NativeConnection&) const { return {}; }

  /// Why a statement of these words, in upper case, cannot run in the transaction of a message. Empty: it can, as far
  /// as the words say. The commands that end a transaction on every database are not asked for.
  virtual std::string refusal(std::span<const std::string> /*words*/) const { return {}; }

  /// Has the database read a statement, without values and without running it.
  ///
  /// Errors: a `DatabaseError`, on which `judge` says more.
  virtual void check(const NativeConnection&, const SqlStatement&) const = 0;
  virtual SqlVerdict judge(const DatabaseError&, const SqlStatement&) const noexcept = 0;

  /// Whether a statement may stay prepared on this connection after its transaction.
  virtual bool may_keep_statements(const NativeConnection&) const { return true; }

  enum class Runs { once, often };
  virtual std::unique_ptr<UserStatement> prepare(const NativeConnection&, const SqlStatement&, Runs) const = 0;

  /// How many bytes of statements, with their values, `run_together` takes at most. 0: this connection runs one
  /// statement after the other.
  virtual std::size_t most_together(const NativeConnection&, const SqlLimits&) const { return 0; }

  /// Runs statements in this order, in one round trip as far as their text allows. They only read or change rows, and
  /// this connection has prepared them.
  ///
  /// Errors: the `DatabaseError` of the first that failed; nothing says which one that was. Those before it have run.
  virtual void run_together(const NativeConnection&, std::span<UserRun> runs) const {
    for (UserRun& each : runs) each.prepare_anew = each.statement->run(each.values);
  }

 protected:
  UserSql() = default;
};

/// The statement's text with `placeholder(i)` in the i-th place of a value, from 0.
template <class Placeholder>
std::string joined(const SqlStatement& statement, Placeholder&& placeholder) {
  std::string text = statement.pieces.front();
  for (std::size_t i = 0; i < statement.values.size(); ++i) {
    text += placeholder(i);
    text += statement.pieces[i + 1];
  }
  return text;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
