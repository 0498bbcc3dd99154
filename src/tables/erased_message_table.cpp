#include "tables/erased_message_table.hpp"

#include <fmt/format.h>

#include "backend/lease_end.hpp"
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
                       "business_key < {}",
                       sql.milliseconds_since("consumed_at"), sql.table(backend::consumed_message_table),
                       sql.text(consumer_), sql.text(erased_key_prefix), sql.text(erased_key_end)),
           3)) {
    erased.push_back({.key = std::move(row[0]).value_or(""),
                      .is_consumed = row[1] == to_string(RowState::consumed),
                      .age = std::chrono::milliseconds(backend::number_in(row[2].value_or("0")))});
  }
  return erased;
}

bool ErasedMessageTable::add(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::consumed_message_table);
  const std::string is_key = sql.is_key(consumer_, business_key);
  // A message that has only failed has no row. A process with a marker may be running it.
  backend::try_insert(
      session_,
      fmt::format("INSERT INTO {} (consumer, business_key, state, attempt_token, consumed_at) SELECT "
                  "consumer, business_key, 'discarded', {}, {} FROM {} WHERE {} AND running_token IS "
                  "NULL",
                  table, sql.token(Token::random()), sql.now(), sql.table(backend::failed_message_table), is_key),
      backend::message_key, backend::TransactionUse::open);
  const std::size_t changed = session_.execute(fmt::format(
      "UPDATE {} SET state = CASE WHEN state = 'consumed' THEN 'consumed' ELSE 'discarded' END, message_id = "
      "NULL, content_hash = NULL, result = NULL, lease_owner = NULL, lease_expires_at = NULL WHERE {} AND "
      "(state IN ('consumed', 'parked', 'discarded') OR {})",
      table, is_key, backend::is_consuming_without_lease(sql)));
  if (changed == 0) return false;
  backend::try_insert(session_,
                      fmt::format("INSERT INTO {} (consumer, business_key, state, attempt_token, consumed_at) SELECT "
                                  "consumer, {}, state, attempt_token, consumed_at FROM {} WHERE {}",
                                  table, sql.text(erased_key(consumer_, business_key)), table, is_key),
                      backend::message_key, backend::TransactionUse::open);
  return true;
}

void ErasedMessageTable::remove_traces(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string is_key = sql.is_key(consumer_, business_key);
  for (const std::string_view table : {backend::failed_message_table, backend::conflicting_message_table}) {
    session_.execute(fmt::format("DELETE FROM {} WHERE {}", sql.table(table), is_key));
  }
  session_.execute(fmt::format("UPDATE {} SET business_key = {} WHERE {}", sql.table(backend::audit_table),
                               sql.text(erased_key(consumer_, business_key)), is_key));
}

bool ErasedMessageTable::remove(std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.execute(fmt::format("DELETE FROM {} WHERE {} AND state IN ('consumed', 'discarded')",
                                      sql.table(backend::consumed_message_table),
                                      sql.is_key(consumer_, business_key))) > 0;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
