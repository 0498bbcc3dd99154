#include <txinbox/operations.hpp>

#include <array>

#include <fmt/format.h>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"
#include "tables/list_cursor.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

std::string condition_of(const AuditFilter& filter, const backend::Dialect& sql) {
  std::string condition = "1 = 1";
  const auto require = [&](std::string_view column, const std::string& value) {
    if (!value.empty()) condition += fmt::format(" AND {} = {}", column, sql.text(value));
  };
  require("consumer", filter.consumer);
  require("business_key", filter.business_key);
  require("actor", filter.actor);
  require("action", filter.action);
  if (filter.newer_than.count() > 0) condition += " AND at > " + sql.before_any(filter.newer_than);
  if (!filter.after.empty()) {
    condition += fmt::format(" AND id < {}", detail::read_number_cursor(detail::PagedList::audit, filter.after));
  }
  return condition;
}

}  // namespace

std::vector<AuditRecord> list_audit(ConnectionRef connection, const AuditFilter& filter) {
  if (!filter.consumer.empty()) detail::check_consumer(filter.consumer);
  if (!filter.business_key.empty()) detail::check_business_key(filter.business_key);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  constexpr std::array tables{backend::audit_table};
  const auto dialect = database.dialect(detail::schema_of_tables(*database.catalog(sql), tables));
  std::vector<AuditRecord> records;
  for (const backend::Row& row : backend::query(
           *sql,
           fmt::format("SELECT id, {}, actor, action, consumer, business_key, messages, reason FROM {} WHERE {} "
                       "ORDER BY id DESC LIMIT {}",
                       dialect->utc_text("at"), dialect->table(backend::audit_table), condition_of(filter, *dialect),
                       backend::limit_of(filter.limit)),
           8)) {
    const std::int64_t id = backend::number_in(row[0].value_or(""));
    records.push_back({.id = id,
                       .at = backend::time_in(row[1]),
                       .actor = row[2].value_or(""),
                       .action = row[3].value_or(""),
                       .consumer = row[4].value_or(""),
                       .business_key = row[5].value_or(""),
                       .messages = backend::number_in(row[6].value_or("")),
                       .reason = row[7].value_or(""),
                       .cursor = detail::cursor_text(detail::PagedList::audit, id)});
  }
  return records;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
