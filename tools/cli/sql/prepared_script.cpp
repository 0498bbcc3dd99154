#include "cli/sql/prepared_script.hpp"

#include <algorithm>
#include <iterator>

#include <soci/soci.h>

#ifdef TXINBOX_WITH_POSTGRESQL
#include <soci/postgresql/soci-postgresql.h>

#include <libpq-fe.h>
#endif

#include "cli/sql/row_statement.hpp"

namespace txinbox::cli {
namespace {

// Combinations of types that are kept prepared for one statement.
constexpr std::size_t most_kept = 8;

// Others (DEALLOCATE, SET) may reach what is prepared in the session.
bool has_only_row_statements(const Script& script) {
  return std::all_of(script.statements.begin(), script.statements.end(),
                     [](const Statement& statement) { return is_row_statement(statement.text); });
}

// Behind a pooler that gives each transaction another connection to the server, a prepared statement's
// name can be somebody else's statement. Such a pooler cannot hand out the server's own process number,
// which is this client's for as long as it is connected.
bool may_keep_statements(soci::session& session) {
  if (session.get_backend_name() != "postgresql") return true;
#ifdef TXINBOX_WITH_POSTGRESQL
  const auto* backend = static_cast<const soci::postgresql_session_backend*>(session.get_backend());
  int server = 0;
  session << "select pg_catalog.pg_backend_pid()", soci::into(server);
  return server == PQbackendPID(reinterpret_cast<PGconn*>(backend->conn_));
#else
  return false;
#endif
}

}  // namespace

PreparedScript::PreparedScript(soci::session& session) : session_(session) {}

void PreparedScript::begin(const Script& script) {
  kept_.clear();
  kept_.resize(script.statements.size());
  if (has_only_row_statements(script) && may_keep_statements(session_)) {
    for (auto& kept : kept_) kept.emplace();
  }
  stale_ = false;
}

void PreparedScript::run(const Script& script, std::size_t number, Values& values) {
  // Not when it failed: PostgreSQL frees nothing in a transaction that has failed.
  if (stale_) begin(script);
  stale_ = true;
  const Statement& statement = script.statements[number];
  auto& kept = kept_[number];
  if (!kept) {
    PreparedStatement(session_, statement, values, PreparedStatement::Runs::once).run(values);
  } else {
    auto found = std::find_if(kept->begin(), kept->end(), [&](const auto& each) { return each->fits(values); });
    if (found == kept->end()) {
      if (kept->size() == most_kept) kept->erase(kept->begin());
      kept->push_back(std::make_unique<PreparedStatement>(session_, statement, values, PreparedStatement::Runs::often));
      found = std::prev(kept->end());
    }
    // Rows that are not read to their end lock the database on SQLite; and on PostgreSQL a statement
    // with rows fails for good when their type changes.
    if ((*found)->run(values)) kept.reset();
  }
  stale_ = false;
}

}  // namespace txinbox::cli
