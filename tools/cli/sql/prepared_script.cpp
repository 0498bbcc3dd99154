#include "cli/sql/prepared_script.hpp"

#include <algorithm>

#include "cli/sql/sql_script.hpp"
#include "cli/sql/statement_size.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::cli {
namespace {

// Other statements (DEALLOCATE, SET) can affect the prepared statements of the session.
bool has_only_row_statements(const Script& script) {
  return std::all_of(script.statements.begin(), script.statements.end(),
                     [](const Statement& statement) { return is_row_statement(statement.text); });
}

// A greater limit would not be faster. Each run needs memory here and on the server until all have run.
constexpr std::size_t most_runs_together = 1000;

}  // namespace

// Only statements that read or change rows can run together, because they cannot end the transaction. After another
// statement, txinbox must know for which message it ran first.
std::size_t most_together(const Script& script, const backend::NativeConnection& connection, const SqlLimits& limits) {
  if (!has_only_row_statements(script)) return 0;
  return user_sql_of(connection.database()).most_together(connection, limits);
}

PreparedScript::PreparedScript(soci::session& session)
    : connection_(backend::connection_of(session)), sql_(user_sql_of(connection_->database())) {}

void PreparedScript::begin(const Script& script, bool keeps_statements) {
  waiting_.clear();  // of a run that failed
  numbers_.clear();
  kept_.clear();
  kept_.resize(script.statements.size());
  const bool may_keep = keeps_statements && has_only_row_statements(script);
  for (Kept& kept : kept_) kept.may_keep = may_keep;
  stale_ = false;
}

void PreparedScript::run(const Script& script, std::size_t number, const Values& values, bool keeps_statements) {
  // Not after a failure: a server may refuse to free statements in a failed transaction.
  if (stale_) begin(script, keeps_statements);
  stale_ = true;
  ran(number, prepared(script, number).run(values));
  stale_ = false;
}

void PreparedScript::run_together(const Script& script, std::span<const Values* const> messages,
                                  bool keeps_statements) {
  if (stale_) begin(script, keeps_statements);
  stale_ = true;
  std::size_t size = 0;
  for (const Values* values : messages) {
    for (std::size_t i = 0; i < script.statements.size(); ++i) {
      const std::size_t more = most_size_with_values(script.statements[i], *values);
      if (size + more > script.most_together || waiting_.size() == most_runs_together) {
        flush();
        size = 0;
      }
      size += more;
      waiting_.push_back({&prepared(script, i), *values});
      numbers_.push_back(i);
    }
  }
  flush();
  stale_ = false;
}

void PreparedScript::flush() {
  if (waiting_.size() == 1) {  // it may have the greatest length that the server accepts, so add nothing to it
    waiting_.front().prepare_anew = waiting_.front().statement->run(waiting_.front().values);
  } else {
    sql_.run_together(*connection_, waiting_);
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) ran(numbers_[i], waiting_[i].prepare_anew);
  waiting_.clear();
  numbers_.clear();
}

UserStatement& PreparedScript::prepared(const Script& script, std::size_t number) {
  using Runs = UserSql::Runs;
  Kept& kept = kept_[number];
  if (kept.statement == nullptr) {
    kept.statement =
        sql_.prepare(*connection_, script.statements[number].sql, kept.may_keep ? Runs::often : Runs::once);
  }
  return *kept.statement;
}

void PreparedScript::ran(std::size_t number, bool prepare_anew) {
  Kept& kept = kept_[number];
  if (prepare_anew) kept.may_keep = false;
  if (!kept.may_keep) kept.statement.reset();
}

}  // namespace txinbox::cli
