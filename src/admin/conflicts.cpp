#include <string>
#include <vector>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

std::string condition_of(const ConflictFilter& filter, const backend::Dialect& sql) {
  std::string condition = "1 = 1";
  if (!filter.consumer.empty()) condition += " AND consumer = " + sql.text(filter.consumer);
  if (!filter.business_key.empty()) condition += " AND business_key = " + sql.text(filter.business_key);
  return condition;
}

/// The databases write hexadecimal digits in different cases.
std::string lower_case(const std::optional<std::string>& hex) {
  return detail::to_hex(detail::from_hex(hex.value_or("")));
}

}  // namespace

std::vector<ConflictingContent> list_conflicts(ConnectionRef connection, const ConflictFilter& filter) {
  if (!filter.consumer.empty()) detail::check_consumer(filter.consumer);
  if (!filter.business_key.empty()) detail::check_business_key(filter.business_key);
  const backend::ConnectionPtr& connected = detail::ConnectionAccess::of(connection);
  const auto catalog = connected->database().catalog(connected);
  const auto sql = connected->database().dialect(detail::schema_of_tables(*catalog, backend::inbox_tables));
  std::vector<ConflictingContent> found;
  for (const auto& row : backend::query(
           *connected,
           fmt::format(
               "SELECT consumer, business_key, message_id, original_message_id, {}, {}, reason, deliveries, {}, "
               "{}, {} FROM {} WHERE {} ORDER BY last_at DESC, consumer, business_key, content_hash LIMIT {}",
               sql->hex_text("content_hash"), sql->hex_text("original_hash"), sql->utc_text("first_at"),
               sql->utc_text("last_at"), sql->milliseconds_since("last_at"),
               sql->table(backend::conflicting_message_table), condition_of(filter, *sql), filter.limit),
           11)) {
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
  }
  return found;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
