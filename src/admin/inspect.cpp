#include <txinbox/inspect.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "admin/inbox_findings.hpp"
#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"
#include "tables/lease_list.hpp"
#include "tables/list_cursor.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

/// The databases write hexadecimal digits in different cases.
std::string lower_case(const std::optional<std::string>& hex) {
  return detail::to_hex(detail::from_hex(hex.value_or("")));
}

std::string condition_of(const ConflictFilter& filter, const backend::Dialect& sql) {
  std::string condition = "1 = 1";
  if (!filter.consumer.empty()) condition += " AND consumer = " + sql.text(filter.consumer);
  if (!filter.business_key.empty()) condition += " AND business_key = " + sql.text(filter.business_key);
  if (filter.after.empty()) return condition;
  const detail::KeyCursor row = detail::read_key_cursor(detail::PagedList::conflicts, filter.after);
  return condition + " AND " +
         detail::is_behind({{"last_at", sql.time(row.time)},
                            {"consumer", sql.text(row.consumer)},
                            {"business_key", sql.text(row.business_key)},
                            {"content_hash", sql.bytes(row.content_hash)}},
                           detail::ListOrder::descending);
}

/// It compares the text of the time, not the time. With the time, the database would read its index row by row from the
/// beginning, to find leases.
std::string condition_of(const LeaseFilter& filter, const detail::LeaseList& leases, const backend::Dialect& sql) {
  std::string condition = leases.condition(filter.consumer);
  if (filter.after.empty()) return condition;
  const detail::KeyCursor row = detail::read_key_cursor(detail::PagedList::leases, filter.after);
  return condition + " AND " +
         detail::is_behind({{sql.exact_time("consumed_at"), sql.text(row.time)},
                            {leases.consumer(), sql.text(row.consumer)},
                            {"business_key", sql.text(row.business_key)}},
                           detail::ListOrder::ascending);
}

}  // namespace

std::vector<Finding> diagnose(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  const detail::OutsideTransaction outside(sql);
  const auto catalog = database.catalog(sql);
  std::vector<Finding> findings;
  const auto take = [&](const std::vector<backend::Problem>& problems) {
    std::ranges::transform(problems, std::back_inserter(findings), &backend::Problem::finding);
  };
  const auto tables = detail::examine(*catalog, database.name());
  take(tables.problems);
  take(detail::missing_outbox_rows(*catalog, database.name(), tables));
  const bool usable = std::ranges::none_of(tables.problems, [](const backend::Problem& p) {
    return p.finding.severity == Severity::error && !backend::concerns_optional(p);
  });
  take(database.attach(sql, backend::Ownership::caller)->unsafe_settings());
  std::ranges::move(catalog->check_server(), std::back_inserter(findings));
  if (const auto transport = catalog->transport(); transport.leaves_host && transport.encryption.empty()) {
    findings.push_back({Severity::note, "encryption",
                        "none: who is between this host and the server can read and change what is consumed",
                        "sslmode=verify-full in the database URL (SECURITY.md)"});
  }
  if (usable) {
    const detail::OptionalTables has{.outbox = tables.has_outbox(), .operations = tables.has_operations()};
    std::optional<backend::LogReader> log_reader;
    if (has.outbox) {
      std::ranges::move(catalog->check_outbox_numbers(tables.schema), std::back_inserter(findings));
      log_reader = catalog->find_log_reader(tables.schema);
    }
    std::ranges::move(detail::inbox_findings(*sql, *database.dialect(tables.schema), has, log_reader),
                      std::back_inserter(findings));
  }
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
  return findings;
}

std::optional<ConsumedMessage> find_message(ConnectionRef connection, std::string_view consumer,
                                            std::string_view business_key) {
  detail::check_consumer(consumer);
  detail::check_business_key(business_key);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const auto dialect = database.dialect(detail::schema_of_tables(*catalog, backend::inbox_tables));
  const auto read = [&](std::string_view table, const std::string& columns, std::size_t count) {
    return backend::query(*sql,
                          fmt::format("SELECT {} FROM {} WHERE {}", columns, dialect->table(table),
                                      dialect->is_key(consumer, business_key)),
                          count);
  };
  const auto rows = read(backend::consumed_message_table,
                         fmt::format("message_id, state, {}, {}, {}, lease_owner, lease_fence, {}",
                                     dialect->utc_text("consumed_at"), dialect->hex_text("result"),
                                     dialect->hex_text("content_hash"), dialect->utc_text("lease_expires_at")),
                         8);
  if (rows.empty()) return std::nullopt;
  const auto& row = rows.front();
  ConsumedMessage found{.consumer = std::string(consumer),
                        .business_key = std::string(business_key),
                        .message_id = row[0].value_or(""),
                        .state = row[1].value_or(""),
                        .consumed_at = backend::time_in(row[2]),
                        .stored = {}};
  if (row[3]) found.stored = detail::from_hex(*row[3]);
  found.content_hash = lower_case(row[4]);
  found.lease_owner = row[5].value_or("");
  if (row[6]) found.lease_fence = backend::number_in(*row[6]);
  found.lease_expires_at = backend::time_in(row[7]);
  for (const auto& failed : read(backend::failed_message_table,
                                 fmt::format("attempts, last_error, {}", dialect->utc_text("last_failed_at")), 3)) {
    found.failures = backend::number_in(failed[0].value_or(""));
    found.last_error = failed[1].value_or("");
    found.last_failed_at = backend::time_in(failed[2]);
  }
  for (const auto& conflicts : read(backend::conflicting_message_table, "sum(deliveries)", 1)) {
    found.conflicts = backend::number_in(conflicts[0].value_or(""));
  }
  return found;
}

std::vector<LeaseInfo> list_leases(ConnectionRef connection, const LeaseFilter& filter) {
  if (!filter.consumer.empty()) detail::check_consumer(filter.consumer);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const std::string schema = detail::schema_of_tables(*catalog);
  const auto dialect = database.dialect(schema);
  const detail::LeaseList list(
      *dialect, catalog->has_lease_index(schema) ? detail::LeaseList::Index::used : detail::LeaseList::Index::missing);
  const auto rows = backend::query(
      *sql,
      fmt::format(
          "SELECT consumer, business_key, message_id, lease_owner, lease_fence, attempts, {}, {}, {}, {}, {} AS since "
          "FROM {} WHERE {} ORDER BY since, consumer, business_key LIMIT {}",
          dialect->utc_text("consumed_at"), dialect->utc_text("lease_expires_at"),
          dialect->milliseconds_since("consumed_at"), dialect->milliseconds_since("lease_expires_at"),
          dialect->exact_time("consumed_at"), list.table(), condition_of(filter, list, *dialect),
          backend::limit_of(filter.limit)),
      11);
  std::vector<LeaseInfo> leases;
  for (const auto& row : rows) {
    LeaseInfo& lease = leases.emplace_back();
    lease.consumer = row[0].value_or("");
    lease.business_key = row[1].value_or("");
    lease.message_id = row[2].value_or("");
    lease.owner = row[3].value_or("");
    lease.fence = backend::number_in(row[4].value_or(""));
    lease.attempts = static_cast<int>(backend::number_in(row[5].value_or("")));
    lease.since = backend::time_in(row[6]);
    lease.expires_at = backend::time_in(row[7]);
    lease.held = std::chrono::milliseconds(std::max(backend::number_in(row[8].value_or("")), 0LL));
    lease.remaining = std::chrono::milliseconds(row[9] ? -backend::number_in(*row[9]) : 0);
    lease.cursor = detail::cursor_text(
        detail::PagedList::leases,
        {.time = row[10].value_or(""), .consumer = lease.consumer, .business_key = lease.business_key});
  }
  return leases;
}

std::vector<ConflictingContent> list_conflicts(ConnectionRef connection, const ConflictFilter& filter) {
  if (!filter.consumer.empty()) detail::check_consumer(filter.consumer);
  if (!filter.business_key.empty()) detail::check_business_key(filter.business_key);
  const backend::ConnectionPtr& connected = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(connected);
  const auto catalog = connected->database().catalog(connected);
  const auto sql = connected->database().dialect(detail::schema_of_tables(*catalog, backend::inbox_tables));
  const std::string page =
      fmt::format("ORDER BY last_at DESC, consumer DESC, business_key DESC, content_hash DESC LIMIT {}",
                  backend::limit_of(filter.limit));
  std::vector<ConflictingContent> found;
  // SQLite computes the columns before it sorts, and here only for the rows that are left.
  for (const auto& row : backend::query(
           *connected,
           fmt::format("SELECT consumer, business_key, message_id, original_message_id, {}, {}, reason, deliveries, "
                       "{}, {}, {}, {} FROM (SELECT * FROM {} WHERE {} {}) c {}",
                       sql->hex_text("content_hash"), sql->hex_text("original_hash"), sql->utc_text("first_at"),
                       sql->utc_text("last_at"), sql->milliseconds_since("last_at"), sql->exact_time("last_at"),
                       sql->table(backend::conflicting_message_table), condition_of(filter, *sql), page, page),
           12)) {
    found.push_back({.consumer = row[0].value_or(""),
                     .business_key = row[1].value_or(""),
                     .message_id = row[2].value_or(""),
                     .original_message_id = row[3].value_or(""),
                     .content_hash = lower_case(row[4]),
                     .original_hash = lower_case(row[5]),
                     .state = row[6].value_or(""),
                     .deliveries = backend::number_in(row[7].value_or("")),
                     .first_at = backend::time_in(row[8]),
                     .last_at = backend::time_in(row[9]),
                     .age = std::chrono::seconds(backend::number_in(row[10].value_or("")) / 1000)});
    found.back().cursor =
        detail::cursor_text(detail::PagedList::conflicts, {.time = row[11].value_or(""),
                                                           .consumer = row[0].value_or(""),
                                                           .business_key = row[1].value_or(""),
                                                           .content_hash = detail::from_hex(row[4].value_or(""))});
  }
  return found;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
