#include "schema/verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "backend/failure.hpp"
#include "backend/query.hpp"
#include "backend/registry.hpp"
#include "backend/table_check.hpp"
#include "schema/embedded_migrations.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using backend::Problem;

std::optional<std::array<int, 3>> parse_version(std::string_view text) {
  std::array<int, 3> parts{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || parts[i] < 0) return std::nullopt;
    at = next;
  }
  if (at != end) return std::nullopt;
  return parts;
}

/// Returns the migration files that are still to be applied.
std::string files_after(std::string_view database, int version) {
  std::string files;
  for (const EmbeddedMigration& m : embedded_migrations()) {
    if (m.database != database || m.version <= version) continue;
    files += fmt::format("{}migrations/{}/V{}__{}.sql", files.empty() ? "" : ", ", database, m.version, m.name);
  }
  return files;
}

/// The name of version 1 in a schema from before 0.1.0. The versions were numbered in another way then.
constexpr std::string_view first_migration_before_0_1_0 = "consumed_message";

/// The version that created the tables of the outbox.
constexpr int version_of_outbox = 2;

/// The version that created `backend::operations_tables`.
constexpr int version_of_operations = 3;

/// Consumers work on tables of this version and of later ones. So a new version of a service can start before the
/// later migrations.
constexpr int oldest_for_consuming = 2;

void examine_version(backend::Catalog& catalog, std::string_view database, SchemaReport& result) {
  const std::string subject(backend::schema_table);
  const auto rows =
      catalog.read(fmt::format("SELECT version, oldest_library, name FROM {} ORDER BY version DESC",
                               backend::database_named(database).dialect(result.schema)->table(backend::schema_table)),
                   3);
  if (!rows.empty()) result.version = static_cast<int>(backend::number_in(rows[0][0].value_or("")));
  const std::string oldest_library = rows.empty() ? "" : rows[0][1].value_or("");
  if (!rows.empty() && rows.back()[0] == "1" && rows.back()[2] == first_migration_before_0_1_0) {
    result.problems = {
        backend::mismatch(subject, "the tables are those of a txinbox before 0.1.0",
                          fmt::format("stop the services, apply migrations/{}/upgrade_to_0.1.0.sql, and then run "
                                      "`txinbox migrate`",
                                      database))};
    return;
  }
  const int newest = newest_version(database);
  if (result.version < newest) {
    const bool usable = result.version >= oldest_for_consuming;
    result.problems.push_back({ErrorCode::schema_outdated,
                               {usable ? Severity::warning : Severity::error, subject,
                                fmt::format("the tables are of version {}, this library {} {}", result.version,
                                            usable ? "has" : "needs", newest),
                                fmt::format("call txinbox::migrate, or run `txinbox migrate`, or apply {}",
                                            files_after(database, result.version))}});
  } else if (result.version > newest && !supports(oldest_library)) {
    result.problems.push_back({ErrorCode::schema_too_new,
                               {Severity::error, subject,
                                fmt::format("the tables are of version {}, which needs txinbox {} or later; this is {}",
                                            result.version, oldest_library, version()),
                                "upgrade txinbox"}});
  }
}

SchemaReport examine_tables(backend::Catalog& catalog, std::string_view database) {
  SchemaReport result;
  result.schema = catalog.find_schema(backend::consumed_message_table);
  const auto schema = result.schema.empty() ? catalog.find_schema(backend::schema_table) : result.schema;
  if (schema.empty()) {
    result.problems = {backend::missing_table(backend::consumed_message_table),
                       backend::missing_table(backend::schema_table)};
    return result;
  }
  result.problems = catalog.check_tables(schema);
  const bool readable = std::ranges::none_of(
      result.problems, [](const Problem& p) { return backend::concerns(p, backend::schema_table); });
  if (!readable || result.schema.empty()) return result;
  examine_version(catalog, database, result);
  // The tables of a pending migration are not missing: the problem schema_outdated already covers them.
  std::erase_if(result.problems, [&](const Problem& p) {
    return p.code == ErrorCode::schema_missing &&
           ((result.version < version_of_outbox && backend::concerns_outbox(p)) ||
            (result.version < version_of_operations && backend::concerns_operations(p)));
  });
  return result;
}

bool same(const Problem& a, const Problem& b) {
  return a.code == b.code && a.finding.subject == b.finding.subject && a.finding.found == b.finding.found;
}

/// Without the tables that a consumer works without.
SchemaReport examine_for_consuming(backend::Catalog& catalog, std::string_view database) {
  SchemaReport result = examine_tables(catalog, database);
  std::erase_if(result.problems, backend::concerns_optional);
  return result;
}

/// Examines the tables for a consumer. If it finds errors, it examines them again until two results agree, but not
/// forever. An examination takes several statements, and another session may migrate between them. So a problem counts
/// only if two examinations find it.
SchemaReport examine_twice(backend::Catalog& catalog, std::string_view database) {
  constexpr int patience = 10;
  SchemaReport result = examine_for_consuming(catalog, database);
  for (int i = 0; i < patience && std::ranges::any_of(result.problems, backend::is_error); ++i) {
    SchemaReport again = examine_for_consuming(catalog, database);
    const bool settled = std::ranges::equal(again.problems, result.problems, same);
    result = std::move(again);
    if (settled) break;
  }
  return result;
}

}  // namespace

int newest_version(std::string_view database) {
  int newest = 0;
  for (const EmbeddedMigration& m : embedded_migrations()) {
    if (m.database == database) newest = std::max(newest, m.version);
  }
  return newest;
}

bool supports(std::string_view oldest_library) {
  const auto oldest = parse_version(oldest_library);
  const auto ours = parse_version(version());
  return oldest && ours && *oldest <= *ours;
}

bool SchemaReport::has_outbox() const {
  return version >= version_of_outbox && std::ranges::none_of(problems, backend::concerns_outbox);
}

bool SchemaReport::has_operations() const {
  return version >= version_of_operations && std::ranges::none_of(problems, backend::concerns_operations);
}

SchemaReport examine(backend::Catalog& catalog, std::string_view database) {
  SchemaReport result = examine_tables(catalog, database);
  if (result.schema.empty()) return result;
  // Only a service with an outbox needs the privileges on its tables, and only an operator those on the tables of the
  // operations.
  for (Problem& p : result.problems) {
    if (p.code != ErrorCode::schema_missing || !backend::concerns_optional(p)) continue;
    if (catalog.may_hide(result.schema, p.finding.subject)) p.finding.severity = Severity::note;
  }
  return result;
}

std::vector<Problem> missing_outbox_rows(backend::Catalog& catalog, std::string_view database,
                                         const SchemaReport& report) {
  std::vector<Problem> problems;
  if (!report.has_outbox()) return problems;
  const auto dialect = backend::database_named(database).dialect(report.schema);
  const auto require = [&](std::string_view table, std::string_view condition, std::int64_t rows) {
    if (!catalog.may_read(table)) return;
    const auto found =
        catalog.read(fmt::format("SELECT count(*) FROM {} WHERE {}", dialect->table(table), condition), 1);
    const std::int64_t count = found.empty() ? 0 : backend::number_in(found[0][0].value_or("0"));
    if (count == rows) return;
    problems.push_back({ErrorCode::schema_missing,
                        {Severity::error, std::string(table), fmt::format("it has {} of its {} rows", count, rows),
                         "call txinbox::migrate, or run `txinbox migrate`"}});
  };
  try {
    require(backend::outbox_part_table, fmt::format("part >= 0 AND part < {}", backend::outbox_parts),
            backend::outbox_parts);
    require(backend::outbox_database_table, "one = 1", 1);
  } catch (const DatabaseError&) {
    const Failure failure = Failure::current();
    if (failure.is_fatal_to_session() || failure.is_transient() || failure.is_of_environment()) throw;
    // This user may not read the outbox: it is that of a service without an outbox.
  }
  return problems;
}

std::string verify_for_consuming(const backend::ConnectionPtr& connection) {
  const auto& database = connection->database();
  const auto catalog = database.catalog(connection);
  auto result = examine_twice(*catalog, database.name());
  std::ranges::move(database.attach(connection, backend::Ownership::caller)->unsafe_settings(),
                    std::back_inserter(result.problems));
  backend::throw_on_errors(result.problems);
  return result.schema;
}

std::string schema_of_tables(backend::Catalog& catalog, std::span<const std::string_view> others) {
  std::string schema = catalog.find_schema(backend::consumed_message_table);
  if (schema.empty()) backend::throw_on_errors({backend::missing_table(backend::consumed_message_table)});
  for (const std::string_view table : others) {
    if (catalog.find_schema(table) != schema) backend::throw_on_errors({backend::missing_table(table)});
  }
  return schema;
}

void refuse_all_shards(const backend::ConnectionPtr& connection) {
  const std::vector<std::string> shards = connection->database().catalog(connection)->shards();
  if (shards.empty()) return;
  throw Error(ErrorCode::unsafe_connection,
              fmt::format("the database is sharded, and this work is done in one shard at a time; connect to {}",
                          fmt::join(shards, ", then to ")));
}

void refuse_one_shard(const backend::ConnectionPtr& connection) {
  const std::string database = connection->database().catalog(connection)->database_of_shard();
  if (database.empty()) return;
  throw Error(ErrorCode::unsafe_connection,
              fmt::format("the connection reaches only one shard, and consumers do not read this there; connect to {}",
                          database));
}

void verify_claims(const backend::ConnectionPtr& connection) {
  backend::throw_on_errors(connection->database().catalog(connection)->check_claims());
}

namespace {

bool in_transaction(const backend::ConnectionPtr& connection) {
  return connection->database().attach(connection, backend::Ownership::caller)->in_transaction();
}

}  // namespace

NoNewTransaction::NoNewTransaction(backend::ConnectionPtr connection)
    : connection_(std::move(connection)), was_open_(in_transaction(connection_)) {}

NoNewTransaction::~NoNewTransaction() {
  if (was_open_) return;
  try {
    if (in_transaction(connection_)) connection_->database().run(*connection_, "ROLLBACK");
  } catch (const std::exception&) {
    // A lost connection has no transaction.
  }
}

OutsideTransaction::OutsideTransaction(const backend::ConnectionPtr& connection) : no_new_(connection) {
  if (no_new_.was_open())
    backend::refuse_open_transaction(*connection->database().attach(connection, backend::Ownership::caller));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
