#include "cli/sql/prepared_script.hpp"

#include <algorithm>

#include "cli/sql/row_statement.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::cli {
namespace {

// Others (DEALLOCATE, SET) may reach what is prepared in the session.
bool has_only_row_statements(const Script& script) {
  return std::all_of(script.statements.begin(), script.statements.end(),
                     [](const Statement& statement) { return is_row_statement(statement.text); });
}

}  // namespace

PreparedScript::PreparedScript(soci::session& session)
    : connection_(backend::connection_of(session)), sql_(connection_->database().user_sql()) {}

void PreparedScript::begin(const Script& script) {
  kept_.clear();
  kept_.resize(script.statements.size());
  const bool may_keep = has_only_row_statements(script) && sql_.may_keep_statements(*connection_);
  for (Kept& kept : kept_) kept.may_keep = may_keep;
  stale_ = false;
}

void PreparedScript::run(const Script& script, std::size_t number, const Values& values) {
  using Runs = backend::UserSql::Runs;
  // Not when it failed: a server may free nothing in a transaction that has failed.
  if (stale_) begin(script);
  stale_ = true;
  Kept& kept = kept_[number];
  if (kept.statement == nullptr) {
    kept.statement =
        sql_.prepare(*connection_, script.statements[number].sql, kept.may_keep ? Runs::often : Runs::once);
  }
  if (kept.statement->run(values)) kept.may_keep = false;
  if (!kept.may_keep) kept.statement.reset();
  stale_ = false;
}

}  // namespace txinbox::cli
