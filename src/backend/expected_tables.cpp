#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

using T = ColumnTypes;

enum Nullability { nullable, not_null, with_default };

struct Column {
  std::string_view name;
  ColumnType T::*type;
  Nullability nullability = nullable;
};

constexpr std::array consumed_message = {
    Column{"consumer", &T::exact_name, not_null},
    Column{"business_key", &T::exact_text, not_null},
    Column{"message_id", &T::text},
    Column{"content_hash", &T::hash},
    Column{"state", &T::state, not_null},
    Column{"attempt_token", &T::token, not_null},
    Column{"lease_owner", &T::name},
    Column{"lease_fence", &T::big_integer},
    Column{"lease_expires_at", &T::time},
    Column{"attempts", &T::integer},
    Column{"result", &T::result},
    Column{"consumed_at", &T::insert_time, not_null},
};
constexpr std::array schema = {
    Column{"version", &T::integer, not_null},
    Column{"name", &T::migration, not_null},
    Column{"oldest_library", &T::version, not_null},
    Column{"applied_at", &T::insert_time, not_null},
};
constexpr std::array failed_message = {
    Column{"consumer", &T::exact_name, not_null},
    Column{"business_key", &T::exact_text, not_null},
    Column{"message_id", &T::text},
    Column{"attempts", &T::integer, with_default},
    Column{"crashes", &T::integer, with_default},
    Column{"first_error", &T::text},
    Column{"first_failed_at", &T::time},
    Column{"last_error", &T::text},
    Column{"last_failed_at", &T::time},
    Column{"error_text", &T::long_text},
    Column{"payload", &T::payload},
    Column{"running_token", &T::token},
    Column{"running_since", &T::time},
    Column{"running_alone", &T::integer},
};
constexpr std::array conflicting_message = {
    Column{"consumer", &T::exact_name, not_null},
    Column{"business_key", &T::exact_text, not_null},
    Column{"content_hash", &T::hash, not_null},
    Column{"original_hash", &T::hash, not_null},
    Column{"message_id", &T::text},
    Column{"original_message_id", &T::text},
    Column{"reason", &T::name, not_null},
    Column{"deliveries", &T::integer, not_null},
    Column{"first_at", &T::time, not_null},
    Column{"last_at", &T::time, not_null},
};
constexpr std::array consumer = {
    Column{"consumer", &T::exact_name, not_null},
    Column{"duplicates", &T::big_integer, with_default},
    Column{"oldest_duplicate", &T::big_integer},
    Column{"oldest_duplicate_at", &T::time},
    Column{"retention", &T::big_integer},
    Column{"purged", &T::big_integer, with_default},
    Column{"purged_at", &T::time},
};
constexpr std::array outbox_message = {
    Column{"seq", &T::sequence, not_null},
    Column{"id", &T::message_id, not_null},
    Column{"aggregatetype", &T::exact_text, not_null},
    Column{"aggregateid", &T::exact_text, not_null},
    Column{"type", &T::exact_text, not_null},
    Column{"payload", &T::payload, not_null},
    Column{"headers", &T::long_text},
    Column{"part", &T::integer, not_null},
    Column{"attempts", &T::integer, with_default},
    Column{"last_error", &T::long_text},
    Column{"parked_at", &T::time},
    Column{"created_at", &T::insert_time, not_null},
};
constexpr std::array outbox_relay = {
    Column{"token", &T::token, not_null},
    Column{"name", &T::name, not_null},
    Column{"started_at", &T::insert_time, not_null},
    Column{"lease_expires_at", &T::time, not_null},
};
constexpr std::array outbox_part = {
    Column{"part", &T::integer, not_null},
    Column{"owner", &T::token},
};
constexpr std::array outbox_database = {
    Column{"one", &T::integer, not_null},
    Column{"id", &T::database_id, not_null},
};
constexpr std::array pause = {
    Column{"consumer", &T::exact_name, not_null},
    Column{"paused_at", &T::insert_time, not_null},
    Column{"resumes_at", &T::time},
    Column{"reason", &T::long_text, not_null},
    Column{"actor", &T::text, not_null},
};
constexpr std::array audit = {
    Column{"id", &T::sequence, not_null},
    Column{"at", &T::insert_time, not_null},
    Column{"actor", &T::text, not_null},
    Column{"action", &T::name, not_null},
    Column{"consumer", &T::exact_name},
    Column{"business_key", &T::exact_text},
    Column{"messages", &T::big_integer, not_null},
    Column{"reason", &T::long_text},
};

ExpectedTable table_of(const ColumnTypes& types, std::span<const Column> columns, ExpectedTable table) {
  for (const Column& each : columns) {
    const ColumnType& type = types.*each.type;
    table.columns.push_back({.name = each.name,
                             .type = type.name,
                             .nullable = each.nullability == nullable || type.is_rowid,
                             .has_default = each.nullability == with_default || type.has_default});
  }
  return table;
}

}  // namespace

std::vector<ExpectedTable> expected_tables(const ColumnTypes& types) {
  const auto table = [&](std::span<const Column> columns, ExpectedTable rest) {
    return table_of(types, columns, std::move(rest));
  };
  constexpr std::string_view message = "consumer, business_key";
  return {
      table(consumed_message,
            {.name = consumed_message_table, .primary_key = message, .retention_column = "consumed_at"}),
      table(schema, {.name = schema_table, .primary_key = "version"}),
      table(failed_message,
            {.name = failed_message_table, .primary_key = message, .retention_column = "last_failed_at"}),
      table(conflicting_message, {.name = conflicting_message_table,
                                  .primary_key = "consumer, business_key, content_hash",
                                  .retention_column = "last_at"}),
      table(consumer, {.name = consumer_table, .primary_key = "consumer"}),
      table(outbox_message, {.name = outbox_message_table, .primary_key = "seq", .unique_column = "id"}),
      table(outbox_relay, {.name = outbox_relay_table, .primary_key = "token"}),
      table(outbox_part, {.name = outbox_part_table, .primary_key = "part"}),
      table(outbox_database, {.name = outbox_database_table, .primary_key = "one"}),
      table(pause, {.name = pause_table, .primary_key = "consumer"}),
      table(audit, {.name = audit_table, .primary_key = "id"}),
  };
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
