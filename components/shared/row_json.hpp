#pragma once

// The JSON of what the database holds. The command's --json and the operators' page have the same members.

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <txinbox/failed_messages.hpp>
#include <txinbox/finding.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>

#include "shared/base64.hpp"
#include "shared/utf8.hpp"

namespace txinbox::component {

using RowJson = nlohmann::ordered_json;  ///< Its members keep their order.

/// The JSON on one line. A byte that is not UTF-8 becomes U+FFFD, because texts of a database are not always UTF-8.
inline std::string text_of(const RowJson& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// A time in UTC as "2026-01-31 23:59:59.123456". Empty if there is none.
inline std::string time_text(const std::optional<DatabaseTime>& time) {
  if (!time) return {};
  const auto day = std::chrono::floor<std::chrono::days>(*time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(*time - day);
  char text[64];
  (void)std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d:%02d.%06d", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text;
}

/// Reads what `time_text` writes. None for another text.
inline std::optional<DatabaseTime> read_time(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  long hour = 0, minute = 0, second = 0, micro = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2u %2ld:%2ld:%2ld.%6ld", &year, &month, &day, &hour, &minute, &second,
                  &micro) != 7) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  const DatabaseTime time = std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
                            std::chrono::seconds(second) + std::chrono::microseconds(micro);
  return time_text(time) == text ? std::optional(time) : std::nullopt;
}

inline RowJson json_of(const FailedMessage& failed) {
  return {{"consumer", failed.consumer},       {"business_key", failed.business_key},
          {"message_id", failed.message_id},   {"state", to_string(failed.state)},
          {"attempts", failed.attempts},       {"crashes", failed.crashes},
          {"first_error", failed.first_error}, {"first_failed_at", time_text(failed.first_failed_at)},
          {"last_error", failed.last_error},   {"last_failed_at", time_text(failed.last_failed_at)},
          {"age_seconds", failed.age.count()}, {"error_text", failed.error_text}};
}

inline RowJson json_of(const FailedGroup& group) {
  return {{"consumer", group.consumer},
          {"state", to_string(group.state)},
          {"error_class", group.error_class},
          {"messages", group.messages},
          {"first_failed_at", time_text(group.first_failed_at)},
          {"last_failed_at", time_text(group.last_failed_at)}};
}

/// Adds `payload`, or `payload_base64` if it is not UTF-8.
inline void add_payload(RowJson& json, const std::string& payload) {
  if (is_utf8(payload)) {
    json["payload"] = payload;
  } else {
    json["payload_base64"] = base64(payload);
  }
}

inline RowJson json_of(const LeaseInfo& lease) {
  return {{"consumer", lease.consumer},
          {"business_key", lease.business_key},
          {"message_id", lease.message_id},
          {"owner", lease.owner},
          {"fence", lease.fence},
          {"attempts", lease.attempts},
          {"since", time_text(lease.since)},
          {"expires_at", time_text(lease.expires_at)},
          {"held_ms", lease.held.count()},
          {"remaining_ms", lease.remaining.count()}};
}

inline RowJson json_of(const ConflictingContent& each) {
  return {{"consumer", each.consumer},
          {"business_key", each.business_key},
          {"message_id", each.message_id},
          {"original_message_id", each.original_message_id},
          {"content_hash", each.content_hash},
          {"original_hash", each.original_hash},
          {"state", each.state},
          {"deliveries", each.deliveries},
          {"first_at", time_text(each.first_at)},
          {"last_at", time_text(each.last_at)},
          {"age_seconds", each.age.count()}};
}

inline RowJson json_of(const OutboxMessageInfo& each) {
  RowJson json{{"id", each.id},
               {"topic", each.topic},
               {"key", each.key},
               {"type", each.type},
               {"state", to_string(each.state)},
               {"attempts", each.attempts},
               {"last_error", each.last_error},
               {"created_at", time_text(each.created_at)},
               {"age_ms", each.age.count()},
               {"parked_at", time_text(each.parked_at)}};
  if (each.payload) add_payload(json, *each.payload);
  return json;
}

inline RowJson json_of(const OutboxStatus& status) {
  RowJson json{{"waiting", status.waiting},
               {"failing", status.failing},
               {"parked", status.parked},
               {"oldest", time_text(status.oldest)},
               {"oldest_ms", status.oldest_age.count()},
               {"free_parts", status.free_parts},
               {"relays", RowJson::array()}};
  for (const auto& relay : status.relays) {
    json["relays"].push_back({{"name", relay.name},
                              {"started_at", time_text(relay.started_at)},
                              {"remaining_ms", relay.remaining.count()},
                              {"parts", relay.parts}});
  }
  return json;
}

inline RowJson json_of(const ConsumerPause& pause) {
  return {{"consumer", pause.consumer},
          {"paused_at", time_text(pause.paused_at)},
          {"resumes_at", time_text(pause.resumes_at)},
          {"reason", pause.reason},
          {"by", pause.actor}};
}

inline RowJson json_of(const AuditRecord& record) {
  return {{"id", record.id},
          {"at", time_text(record.at)},
          {"by", record.actor},
          {"action", record.action},
          {"consumer", record.consumer},
          {"business_key", record.business_key},
          {"messages", record.messages},
          {"reason", record.reason}};
}

inline RowJson json_of(const Finding& finding) {
  return {{"severity", to_string(finding.severity)},
          {"subject", finding.subject},
          {"found", finding.found},
          {"remedy", finding.remedy}};
}

/// Adds `stored`, or `stored_hex` if it is not UTF-8.
inline RowJson json_of(const ConsumedMessage& row) {
  RowJson json{{"consumer", row.consumer},
               {"business_key", row.business_key},
               {"message_id", row.message_id},
               {"state", row.state},
               {"consumed_at", time_text(row.consumed_at)},
               {"stored", nullptr},
               {"content_hash", row.content_hash},
               {"lease_owner", row.lease_owner},
               {"lease_fence", nullptr},
               {"lease_expires_at", time_text(row.lease_expires_at)},
               {"failures", row.failures},
               {"last_error", row.last_error},
               {"last_failed_at", time_text(row.last_failed_at)},
               {"conflicts", row.conflicts}};
  if (row.lease_fence) json["lease_fence"] = *row.lease_fence;
  if (row.stored && is_utf8(*row.stored)) {
    json["stored"] = *row.stored;
  } else if (row.stored) {
    std::string hex;
    for (const char c : *row.stored) {
      char digits[3];
      (void)std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      hex += digits;
    }
    json["stored_hex"] = hex;
  }
  return json;
}

inline RowJson json_of(const QuickConsumerStatus& c) {
  RowJson json{{"consumer", c.consumer},
               {"failed", c.failed},
               {"parked", c.parked},
               {"conflicts", c.conflicts},
               {"leases_held", nullptr},
               {"expired_leases", nullptr},
               {"last_ten_seconds", c.last_ten_seconds},
               {"duplicates", c.duplicates},
               {"oldest_duplicate_ms", nullptr},
               {"oldest_duplicate_at", time_text(c.oldest_duplicate_at)},
               {"retention_s", nullptr},
               {"purged_at", time_text(c.purged_at)},
               {"purged", c.purged},
               {"paused", c.paused}};
  if (c.leases_held) json["leases_held"] = *c.leases_held;
  if (c.expired_leases) json["expired_leases"] = *c.expired_leases;
  if (c.oldest_duplicate) json["oldest_duplicate_ms"] = c.oldest_duplicate->count();
  if (c.retention) json["retention_s"] = c.retention->count();
  return json;
}

inline RowJson json_of(const QuickStatus& status) {
  RowJson json{{"database", status.database},
               {"server_version", status.server_version},
               {"schema_version", status.schema_version},
               {"estimated_rows", nullptr},
               {"estimated_bytes", nullptr},
               {"consumers", RowJson::array()},
               {"purged", status.purged},
               {"outbox_oldest", time_text(status.outbox_oldest)},
               {"outbox_oldest_ms", status.outbox_oldest_age.count()}};
  if (status.estimated_rows) json["estimated_rows"] = *status.estimated_rows;
  if (status.estimated_bytes) json["estimated_bytes"] = *status.estimated_bytes;
  for (const auto& each : status.consumers) json["consumers"].push_back(json_of(each));
  return json;
}

/// The rows in their order.
template <class Row>
RowJson json_of(const std::vector<Row>& rows) {
  RowJson json = RowJson::array();
  for (const Row& row : rows) json.push_back(json_of(row));
  return json;
}

}  // namespace txinbox::component
