#include <txinbox/schema.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "backend/connection_access.hpp"
#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "backend/table_check.hpp"
#include "schema/embedded_migrations.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using backend::Problem;
using detail::SchemaReport;

/// Holds the lock that makes other `migrate` calls wait. Without `finish`, the destructor undoes the migrations if the
/// database can.
class MigrationScope {
 public:
  explicit MigrationScope(backend::Catalog& catalog) : catalog_(catalog) {
    try {
      catalog_.begin_migrations();
    } catch (...) {
      catalog_.abandon_migrations();
      throw;
    }
  }
  ~MigrationScope() {
    if (!finished_) catalog_.abandon_migrations();
  }
  MigrationScope(const MigrationScope&) = delete;
  MigrationScope& operator=(const MigrationScope&) = delete;

  void finish() {
    catalog_.end_migrations();
    finished_ = true;
  }

 private:
  backend::Catalog& catalog_;
  bool finished_ = false;
};

/// Throws if tables with our names exist that no migration made. Such tables would make a migration fail halfway.
void refuse_foreign_tables(const SchemaReport& before) {
  std::vector<Problem> foreign;
  std::ranges::copy_if(before.problems, std::back_inserter(foreign), [&](const Problem& p) {
    const bool about_version = backend::concerns(p, backend::schema_table);
    return p.code == ErrorCode::schema_mismatch && (about_version || before.version == 0);
  });
  backend::throw_on_errors(foreign);
}

}  // namespace

std::vector<Migration> migrations(const std::string& database) {
  backend::database_named(database);
  std::vector<Migration> found;
  for (const auto& m : detail::embedded_migrations()) {
    if (m.database == database) found.push_back({m.version, std::string(m.name), std::string(m.sql)});
  }
  std::ranges::sort(found, {}, &Migration::version);
  return found;
}

std::vector<Migration> migrate(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  const detail::OutsideTransaction outside(sql);
  detail::refuse_all_shards(sql);
  const auto catalog = database.catalog(sql);
  MigrationScope scope(*catalog);
  const auto before = detail::examine(*catalog, database.name());
  refuse_foreign_tables(before);
  // Each migration can run again, and makes only what is missing.
  const bool lacks_tables = std::ranges::any_of(before.problems, [](const Problem& problem) {
    return problem.code == ErrorCode::schema_missing && problem.finding.severity == Severity::error;
  });
  const bool lacks_rows = !detail::missing_outbox_rows(*catalog, database.name(), before).empty();
  const int from = lacks_tables || lacks_rows ? 0 : before.version;
  std::vector<Migration> applied;
  for (Migration& migration : migrations(std::string(database.name()))) {
    if (migration.version <= from) continue;
    catalog->apply(migration.sql);
    applied.push_back(std::move(migration));
  }
  // Check before the commit. If the database's DDL has transactions, a refused migration then changes nothing.
  backend::throw_on_errors(detail::examine(*catalog, database.name()).problems);
  scope.finish();
  return applied;
}

std::vector<MigrationState> migration_states(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  std::map<int, MigrationState> states;
  for (Migration& migration : migrations(std::string(database.name()))) {
    states[migration.version] = {
        .version = migration.version, .name = std::move(migration.name), .known = true, .applied_at = {}};
  }
  const detail::OutsideTransaction outside(sql);
  const std::string schema = database.catalog(sql)->find_schema(backend::schema_table);
  if (!schema.empty()) {
    const auto dialect = database.dialect(schema);
    for (const auto& row :
         backend::query(*sql,
                        fmt::format("SELECT version, name, {} FROM {} {}", dialect->utc_text("applied_at"),
                                    dialect->table(backend::schema_table), backend::all_rows),
                        3)) {
      const int version = static_cast<int>(backend::number_in(row[0].value_or("")));
      const auto [found, is_new] = states.try_emplace(version);
      MigrationState& state = found->second;
      if (is_new || state.name != row[1])
        state = {.version = version, .name = row[1].value_or(""), .known = false, .applied_at = {}};
      state.applied = true;
      state.applied_at = backend::time_in(row[2]);
    }
  }
  std::vector<MigrationState> all;
  all.reserve(states.size());
  for (auto& [version, state] : states) all.push_back(std::move(state));
  return all;
}

void verify(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::OutsideTransaction outside(sql);
  detail::verify_for_consuming(sql);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
