#include "tables/lease_table.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "backend/lease_end.hpp"
#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {

using backend::Dialect;
using backend::KeptStatement;
using backend::or_null;
using backend::Parameter;
using enum backend::ParameterType;

std::string table(const Dialect& sql) { return sql.table(backend::consumed_message_table); }

/// Returns the condition for the row. The values from `position` are the consumer and the key.
std::string is_key(const Dialect& sql, int position) {
  return fmt::format("consumer = {} AND business_key = {}", sql.parameter(text, position),
                     sql.parameter(text, position + 1));
}

constexpr int found_columns = 7;
constexpr KeptStatement find_row{[](const Dialect& sql) {
  const std::string remaining = fmt::format("CASE WHEN {} THEN 0 ELSE {} END", backend::lease_has_no_end,
                                            sql.milliseconds_since("lease_expires_at"));
  return fmt::format("SELECT state, {}, {}, {}, {}, coalesce(lease_fence, 0), {} FROM {} WHERE {}",
                     sql.hex_token("attempt_token"), sql.hex_text("content_hash"), sql.hex_text("result"), remaining,
                     sql.milliseconds_since("consumed_at"), table(sql), is_key(sql, 1));
}};

/// The end of a statement that gives a lease. A lease without an end counts as expired. Then the statement returns no
/// fence, because nobody holds the lease.
std::string returning_fence(const Dialect& sql) {
  return sql.returning("CASE WHEN lease_expires_at IS NOT NULL THEN lease_fence END");
}

/// Values: consumer, key, message id, hash, token, owner, milliseconds of the lease.
constexpr KeptStatement insert_lease{[](const Dialect& sql) {
  return fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token, lease_owner, "
      "lease_fence, lease_expires_at, attempts, consumed_at) VALUES ({}, {}, {}, {}, 'consuming', {}, {}, {}, {}, 1, "
      "{}){}{}",
      table(sql), sql.parameter(text, 1), sql.parameter(text, 2), sql.parameter(text, 3), sql.parameter(bytes, 4),
      sql.parameter(token, 5), sql.parameter(text, 6), sql.marked(sql.now_in_microseconds()),
      sql.now_plus(sql.parameter(integer, 7)), sql.now(), sql.unless_exists(backend::message_key.columns),
      returning_fence(sql));
}};

/// Values: token, message id, hash, owner, milliseconds of the lease, consumer, key, and the token and the fence that
/// the row must have.
std::string take_over_sql(const Dialect& sql, std::string_view is_free, const std::string& hash,
                          std::string_view attempts) {
  return fmt::format(
      "UPDATE {} SET state = 'consuming', attempt_token = {}, message_id = {}, content_hash = {}, result = NULL, "
      "lease_owner = {}, lease_fence = {}, lease_expires_at = {}, attempts = {}, consumed_at = {} WHERE {} AND {} AND "
      "attempt_token = {} AND coalesce(lease_fence, 0) = {}{}",
      table(sql), sql.parameter(token, 1), sql.parameter(text, 2), hash, sql.parameter(text, 4),
      sql.marked(sql.greater("coalesce(lease_fence, 0) + 1", sql.now_in_microseconds())),
      sql.now_plus(sql.parameter(integer, 5)), attempts, sql.now(), is_key(sql, 6), is_free, sql.parameter(token, 8),
      sql.parameter(integer, 9), returning_fence(sql));
}

constexpr KeptStatement take_over_consumed{
    [](const Dialect& sql) { return take_over_sql(sql, "state = 'consumed'", sql.parameter(bytes, 3), "1"); }};

/// A message without content keeps the hash of the first message that the lease was for.
constexpr KeptStatement take_over_expired{[](const Dialect& sql) {
  return take_over_sql(sql, backend::is_consuming_without_lease(sql),
                       fmt::format("coalesce({}, content_hash)", sql.parameter(bytes, 3)), "coalesce(attempts, 0) + 1");
}};

/// Returns the condition for the row of our own lease. The values from `position` are the consumer, the key, the token
/// and the fence.
std::string is_own(const Dialect& sql, int position) {
  return fmt::format("{} AND state = 'consuming' AND attempt_token = {} AND lease_fence = {}", is_key(sql, position),
                     sql.parameter(token, position + 2), sql.parameter(integer, position + 3));
}

std::string change_own_sql(const Dialect& sql, std::string_view assignments, int position = 1) {
  return fmt::format("UPDATE {} SET {} WHERE {}", table(sql), assignments, is_own(sql, position));
}

constexpr KeptStatement remove_row{
    [](const Dialect& sql) { return fmt::format("DELETE FROM {} WHERE {}", table(sql), is_own(sql, 1)); }};

/// Its first value is the milliseconds of the lease.
constexpr KeptStatement renew_lease{[](const Dialect& sql) {
  return change_own_sql(sql, "lease_expires_at = " + sql.now_plus(sql.parameter(integer, 1)), 2);
}};

/// Its first value is the result.
constexpr KeptStatement complete_row{[](const Dialect& sql) {
  return change_own_sql(sql,
                        fmt::format("state = 'consumed', result = {}, lease_owner = NULL, lease_expires_at = NULL, "
                                    "consumed_at = {}",
                                    sql.parameter(bytes, 1), sql.now()),
                        2);
}};

constexpr KeptStatement release_lease{
    [](const Dialect& sql) { return change_own_sql(sql, "lease_owner = NULL, lease_expires_at = " + sql.now()); }};

constexpr KeptStatement park_row{[](const Dialect& sql) {
  return change_own_sql(sql,
                        "state = 'parked', lease_owner = NULL, lease_expires_at = NULL, consumed_at = " + sql.now());
}};

constexpr KeptStatement discard_row{[](const Dialect& sql) {
  return change_own_sql(sql,
                        "state = 'discarded', message_id = NULL, content_hash = NULL, lease_owner = NULL, "
                        "lease_expires_at = NULL");
}};

}  // namespace

std::optional<backend::ClaimedRow> LeaseTable::find() const {
  const std::array<Parameter, 2> values{{{consumer_}, {message_.business_key}}};
  const auto rows = session_.read_kept(find_row, values, found_columns);
  if (rows.empty()) return std::nullopt;
  const backend::Row& row = rows.front();
  backend::ClaimedRow found;
  found.set_state(row[0].value_or(""));
  found.token = from_hex(row[1].value_or(""));
  found.content_hash = from_hex(row[2].value_or(""));
  if (row[3]) found.result = from_hex(*row[3]);
  if (row[4]) found.lease_remaining = std::chrono::milliseconds(-backend::number_in(*row[4]));
  found.lease_fence = backend::number_in(row[5].value_or(""));
  found.age = std::chrono::milliseconds(backend::number_in(row[6].value_or("")));
  return found;
}

std::optional<std::int64_t> LeaseTable::insert(const LeaseOwner& owner, std::string_view content_hash,
                                               std::chrono::milliseconds lease) const {
  const std::string length = std::to_string(lease.count());
  const std::array<Parameter, 7> values{{{consumer_},
                                         {message_.business_key},
                                         {or_null(message_.message_id)},
                                         {or_null(content_hash), bytes},
                                         {owner.token.bytes(), token},
                                         {owner.name},
                                         {length, integer}}};
  return backend::try_insert_kept(session_, insert_lease, values);
}

std::optional<std::int64_t> LeaseTable::take_over(const LeaseOwner& owner, std::string_view content_hash,
                                                  std::chrono::milliseconds lease,
                                                  const backend::ClaimedRow& seen) const {
  const std::string length = std::to_string(lease.count());
  const std::string fence = std::to_string(seen.lease_fence);
  const Token seen_token = Token::of(seen.token);
  const std::array<Parameter, 9> values{{{owner.token.bytes(), token},
                                         {or_null(message_.message_id)},
                                         {or_null(content_hash), bytes},
                                         {owner.name},
                                         {length, integer},
                                         {consumer_},
                                         {message_.business_key},
                                         {seen_token.bytes(), token},
                                         {fence, integer}}};
  const bool was_consumed = seen.state == RowState::consumed;
  return session_.change_kept(was_consumed ? take_over_consumed : take_over_expired, values).number;
}

bool LeaseTable::change_own(const KeptStatement& statement, const LeaseOwner& owner, std::int64_t fence,
                            std::optional<Parameter> first) const {
  const std::string fence_text = std::to_string(fence);
  std::vector<Parameter> values;
  if (first) values.push_back(*first);
  values.insert(
      values.end(),
      {{consumer_}, {message_.business_key}, {owner.token.bytes(), token}, {std::string_view(fence_text), integer}});
  return session_.change_kept(statement, values).rows == 1;
}

bool LeaseTable::remove(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(remove_row, owner, fence);
}

bool LeaseTable::renew(const LeaseOwner& owner, std::int64_t fence, std::chrono::milliseconds lease) const {
  const std::string length = std::to_string(lease.count());
  return change_own(renew_lease, owner, fence, Parameter{length, integer});
}

bool LeaseTable::complete(const LeaseOwner& owner, std::int64_t fence, const std::optional<std::string>& result) const {
  return change_own(complete_row, owner, fence,
                    Parameter{result ? std::string_view(*result) : std::string_view(), bytes});
}

bool LeaseTable::release(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(release_lease, owner, fence);
}

bool LeaseTable::park(const LeaseOwner& owner, std::int64_t fence) const { return change_own(park_row, owner, fence); }

bool LeaseTable::discard(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(discard_row, owner, fence);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
