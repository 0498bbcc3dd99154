#include "tables/erased_message_table.hpp"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "backend/lease_end.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "message/erased_key.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::vector<ErasedMessage> ErasedMessageTable::read() const {
  const backend::Dialect& sql = session_.dialect();
  std::vector<ErasedMessage> erased;
  for (backend::Row& row : session_.read(
           fmt::format("SELECT business_key, state, {} FROM {} WHERE consumer = {} AND business_key >= {} AND "
                       "business_key < {} {}",
                       sql.milliseconds_since("consumed_at"), sql.table(backend::consumed_message_table),
                       sql.text(consumer_), sql.text(erased_key_prefix), sql.text(erased_key_end), backend::all_rows),
           3)) {
    erased.push_back({.key = std::move(row[0]).value_or(""),
                      .is_consumed = row[1] == to_string(RowState::consumed),
                      .age = std::chrono::milliseconds(backend::number_in(row[2].value_or("0")))});
  }
  return erased;
}

std::optional<Claim> ErasedMessageTable::find(const Message& message, bool past_snapshot) const {
  const backend::Dialect& sql = session_.dialect();
  std::string select = fmt::format("SELECT state FROM {} WHERE {}", sql.table(backend::consumed_message_table),
                                   sql.is_key(consumer_, erased_key(consumer_, message.business_key)));
  if (message.valid_for.count() > 0) {
    select += fmt::format(" AND (state <> 'consumed' OR {} < {})", sql.milliseconds_since("consumed_at"),
                          message.valid_for.count());
  }
  if (past_snapshot) select += sql.past_snapshot();
  const std::string state = backend::query_text(*session_.connection_ptr(), select);
  if (state.empty()) return std::nullopt;
  return state == to_string(RowState::consumed) ? Claim::already_consumed : Claim::discarded;
}

/// Removes what the row of the key holds of the message. The token always changes, so that the statement changes the
/// row also if a connection counts only rows that differ.
bool ErasedMessageTable::blank(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.execute(fmt::format(
             "UPDATE {} SET state = CASE WHEN state = 'consumed' THEN 'consumed' ELSE 'discarded' END, attempt_token = "
             "{}, message_id = NULL, content_hash = NULL, result = NULL, lease_owner = NULL, lease_expires_at = NULL "
             "WHERE {} AND (state IN ('consumed', 'parked', 'discarded') OR {})",
             sql.table(backend::consumed_message_table), sql.token(Token::random()),
             sql.is_key(consumer_, business_key), backend::is_consuming_without_lease(sql))) > 0;
}

bool ErasedMessageTable::add(std::string_view business_key, bool ignores_markers) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::consumed_message_table);
  const std::string is_key = sql.is_key(consumer_, business_key);
  // This order of the locks is that of a delivery: first the row of the key, then its failure.
  if (!blank(business_key)) {
    // A message that has only failed has no row. A process with a marker may be running it.
    const std::string insert = fmt::format(
        "INSERT INTO {} (consumer, business_key, state, attempt_token, consumed_at) SELECT consumer, business_key, "
        "'discarded', {}, {} FROM {} WHERE {}{}",
        table, sql.token(Token::random()), sql.now(), sql.table(backend::failed_message_table), is_key,
        ignores_markers ? "" : " AND running_token IS NULL");
    if (!backend::try_insert(session_, insert, backend::message_key, backend::TransactionUse::open)) return false;
  }
  // The key can have been erased before, and claimed again since then.
  constexpr std::array<std::string_view, 3> columns{"state", "attempt_token", "consumed_at"};
  session_.execute(
      fmt::format("INSERT INTO {} (consumer, business_key, state, attempt_token, consumed_at) SELECT "
                  "consumer, {}, state, attempt_token, consumed_at FROM {} WHERE {}{}",
                  table, sql.text(erased_key(consumer_, business_key)), table, is_key,
                  sql.update_existing(backend::message_key.columns, columns)));
  return true;
}

// MySQL refuses a subquery on the table of a DELETE, except in a derived table.
bool ErasedMessageTable::remove(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::consumed_message_table);
  return session_.execute(fmt::format("DELETE FROM {} WHERE {} AND state IN ('consumed', 'discarded') AND "
                                      "attempt_token IN (SELECT token FROM (SELECT attempt_token AS token FROM {} "
                                      "WHERE {}) erased)",
                                      table, sql.is_key(consumer_, business_key), table,
                                      sql.is_key(consumer_, erased_key(consumer_, business_key)))) > 0;
}

bool ErasedMessageTable::remove_traces(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  std::size_t removed = 0;
  for (const std::string_view table : {backend::failed_message_table, backend::conflicting_message_table}) {
    removed +=
        session_.execute(fmt::format("DELETE FROM {} WHERE {}", sql.table(table), sql.is_key(consumer_, business_key)));
  }
  return removed > 0;
}

bool ErasedMessageTable::replace_in_audit(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.execute(fmt::format("UPDATE {} SET business_key = {} WHERE {}", sql.table(backend::audit_table),
                                      sql.text(erased_key(consumer_, business_key)),
                                      sql.is_key(consumer_, business_key))) > 0;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
