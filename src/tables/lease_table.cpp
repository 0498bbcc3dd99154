#include "tables/lease_table.hpp"

#include <fmt/format.h>

#include "backend/lease_end.hpp"
#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string LeaseTable::table() const { return session_.dialect().table(backend::consumed_message_table); }

std::string LeaseTable::is_key() const { return session_.dialect().is_key(consumer_, message_.business_key); }

using backend::lease_has_no_end;

std::optional<backend::ClaimedRow> LeaseTable::find() const {
  const backend::Dialect& sql = session_.dialect();
  const std::string remaining =
      fmt::format("CASE WHEN {} THEN 0 ELSE {} END", lease_has_no_end, sql.milliseconds_since("lease_expires_at"));
  const auto rows =
      session_.read(fmt::format("SELECT state, {}, {}, {}, {}, coalesce(lease_fence, 0), {} FROM {} WHERE {}",
                                sql.hex_token("attempt_token"), sql.hex_text("content_hash"), sql.hex_text("result"),
                                remaining, sql.milliseconds_since("consumed_at"), table(), is_key()),
                    7);
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

// A lease without an end counts as expired. Then the statement returns no fence, because nobody holds the lease.
constexpr std::string_view fence_of_a_lease = "CASE WHEN lease_expires_at IS NOT NULL THEN lease_fence END";

std::optional<std::int64_t> LeaseTable::insert(const LeaseOwner& owner, std::string_view content_hash,
                                               std::chrono::milliseconds lease) const {
  const backend::Dialect& sql = session_.dialect();
  return backend::try_insert_returning(
      session_,
      fmt::format("INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token, "
                  "lease_owner, lease_fence, lease_expires_at, attempts, consumed_at) VALUES ({}, {}, {}, {}, "
                  "'consuming', {}, {}, {}, {}, 1, {})",
                  table(), sql.text(consumer_), sql.text(message_.business_key), sql.text_or_null(message_.message_id),
                  sql.bytes_or_null(content_hash), sql.token(owner.token), sql.text(owner.name),
                  sql.marked(sql.now_in_microseconds()), sql.now_plus(lease), sql.now()),
      fence_of_a_lease);
}

std::optional<std::int64_t> LeaseTable::take_over(const LeaseOwner& owner, std::string_view content_hash,
                                                  std::chrono::milliseconds lease,
                                                  const backend::ClaimedRow& seen) const {
  const backend::Dialect& sql = session_.dialect();
  // A message without content keeps the hash of the first message that the lease was for.
  const std::string hash = sql.bytes_or_null(content_hash);
  const bool was_consumed = seen.state == RowState::consumed;
  const std::string is_free = was_consumed ? "state = 'consumed'" : backend::is_consuming_without_lease(sql);
  return session_.change_returning(fmt::format(
      "UPDATE {} SET state = 'consuming', attempt_token = {}, message_id = {}, content_hash = {}, result = NULL, "
      "lease_owner = {}, lease_fence = {}, lease_expires_at = {}, attempts = {}, "
      "consumed_at = {} WHERE {} AND {} AND attempt_token = {} AND coalesce(lease_fence, 0) = {}{}",
      table(), sql.token(owner.token), sql.text_or_null(message_.message_id),
      was_consumed ? hash : fmt::format("coalesce({}, content_hash)", hash), sql.text(owner.name),
      sql.marked(sql.greater("coalesce(lease_fence, 0) + 1", sql.now_in_microseconds())), sql.now_plus(lease),
      was_consumed ? "1" : "coalesce(attempts, 0) + 1", sql.now(), is_key(), is_free, sql.token(Token::of(seen.token)),
      seen.lease_fence, sql.returning(fence_of_a_lease)));
}

std::string LeaseTable::is_own(const LeaseOwner& owner, std::int64_t fence) const {
  return fmt::format("{} AND state = 'consuming' AND attempt_token = {} AND lease_fence = {}", is_key(),
                     session_.dialect().token(owner.token), fence);
}

bool LeaseTable::change_own(const LeaseOwner& owner, std::int64_t fence, const std::string& assignments) const {
  return session_.change(fmt::format("UPDATE {} SET {} WHERE {}", table(), assignments, is_own(owner, fence))) == 1;
}

bool LeaseTable::remove(const LeaseOwner& owner, std::int64_t fence) const {
  return session_.change(fmt::format("DELETE FROM {} WHERE {}", table(), is_own(owner, fence))) == 1;
}

bool LeaseTable::renew(const LeaseOwner& owner, std::int64_t fence, std::chrono::milliseconds lease) const {
  return change_own(owner, fence, "lease_expires_at = " + session_.dialect().now_plus(lease));
}

bool LeaseTable::complete(const LeaseOwner& owner, std::int64_t fence, const std::optional<std::string>& result) const {
  const backend::Dialect& sql = session_.dialect();
  return change_own(owner, fence,
                    fmt::format("state = 'consumed', result = {}, lease_owner = NULL, lease_expires_at = NULL, "
                                "consumed_at = {}",
                                result ? sql.bytes(*result) : "NULL", sql.now()));
}

bool LeaseTable::release(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(owner, fence, "lease_owner = NULL, lease_expires_at = " + session_.dialect().now());
}

bool LeaseTable::park(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(
      owner, fence,
      "state = 'parked', lease_owner = NULL, lease_expires_at = NULL, consumed_at = " + session_.dialect().now());
}

bool LeaseTable::discard(const LeaseOwner& owner, std::int64_t fence) const {
  return change_own(owner, fence,
                    "state = 'discarded', message_id = NULL, content_hash = NULL, lease_owner = NULL, lease_expires_at "
                    "= NULL");
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
