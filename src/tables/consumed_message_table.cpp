#include "tables/consumed_message_table.hpp"

#include <fmt/format.h>

#include "backend/lease_end.hpp"
#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "message/content_hash.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

std::string ConsumedMessageTable::table() const { return session_.dialect().table(backend::consumed_message_table); }

std::string ConsumedMessageTable::is_claim(std::string_view consumer, std::string_view business_key,
                                           const Token& token) const {
  const backend::Dialect& sql = session_.dialect();
  return fmt::format("{} AND attempt_token = {} AND state IN ('consumed', 'torn')", sql.is_key(consumer, business_key),
                     sql.token(token));
}

bool ConsumedMessageTable::has_claim(std::string_view consumer, std::string_view business_key,
                                     const Token& token) const {
  return !session_
              .read(fmt::format("SELECT 1 FROM {} WHERE {} LIMIT 1", table(), is_claim(consumer, business_key, token)),
                    1)
              .empty();
}

bool ConsumedMessageTable::delete_claim(std::string_view consumer, std::string_view business_key,
                                        const Token& token) const {
  return session_.run(fmt::format("DELETE FROM {} WHERE {}", table(), is_claim(consumer, business_key, token)), use_) >
         0;
}

/// A connection of MySQL can count only the rows that an UPDATE changes. A row that is torn already is not one of them.
bool ConsumedMessageTable::mark_torn(std::string_view consumer, std::string_view business_key,
                                     const Token& token) const {
  const std::size_t changed = session_.run(fmt::format("UPDATE {} SET state = 'torn', lease_expires_at = NULL WHERE {}",
                                                       table(), is_claim(consumer, business_key, token)),
                                           use_);
  return changed > 0 || has_claim(consumer, business_key, token);
}

bool ConsumedMessageTable::insert(std::string_view consumer, std::string_view business_key, RowState state,
                                  const Token& token) const {
  const backend::Dialect& sql = session_.dialect();
  return backend::try_insert(
      session_,
      fmt::format(
          "INSERT INTO {} (consumer, business_key, state, attempt_token, consumed_at) VALUES ({}, {}, '{}', {}, "
          "{})",
          table(), sql.text(consumer), sql.text(business_key), to_string(state), sql.token(token), sql.now()),
      backend::message_key, use_);
}

bool ConsumedMessageTable::insert_torn(std::string_view consumer, std::string_view business_key,
                                       const Token& token) const {
  return insert(consumer, business_key, RowState::torn, token);
}

std::string ConsumedMessageTable::restart_clock_sql(std::string_view consumer, std::string_view business_key,
                                                    const Token& token) const {
  return fmt::format("UPDATE {} SET consumed_at = {} WHERE {}", table(), session_.dialect().now(),
                     is_claim(consumer, business_key, token));
}

bool ConsumedMessageTable::park(std::string_view consumer, const Message& message) const {
  const backend::Dialect& sql = session_.dialect();
  const ContentHash hash(message.content);
  return backend::try_insert(
      session_,
      fmt::format(
          "INSERT INTO {} (consumer, business_key, message_id, content_hash, state, attempt_token, consumed_at) "
          "VALUES ({}, {}, {}, {}, 'parked', {}, {})",
          table(), sql.text(consumer), sql.text(message.business_key), sql.text_or_null(message.message_id),
          sql.bytes_or_null(hash.bytes()), sql.token(Token::random()), sql.now()),
      backend::message_key, use_);
}

bool ConsumedMessageTable::delete_parked(std::string_view consumer, std::string_view business_key) const {
  return session_.run(fmt::format("DELETE FROM {} WHERE {} AND state = 'parked'", table(),
                                  session_.dialect().is_key(consumer, business_key)),
                      use_) > 0;
}

bool ConsumedMessageTable::insert_discarded(std::string_view consumer, std::string_view business_key) const {
  return insert(consumer, business_key, RowState::discarded, Token::random());
}

bool ConsumedMessageTable::discard(std::string_view consumer, std::string_view business_key) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.run(
             fmt::format("UPDATE {} SET state = 'discarded', lease_owner = NULL, lease_expires_at = NULL "
                         "WHERE {} AND (state IN ('parked', 'torn') OR {})",
                         table(), sql.is_key(consumer, business_key), backend::is_consuming_without_lease(sql)),
             use_) > 0;
}

bool ConsumedMessageTable::has_rows_of(std::string_view consumer) const {
  return !session_
              .read(fmt::format("SELECT 1 FROM {} WHERE consumer = {} LIMIT 1", table(),
                                session_.dialect().text(consumer)),
                    1)
              .empty();
}

bool delete_message(backend::Session& session, const backend::Dialect& sql, std::string_view consumer,
                    std::string_view business_key, backend::TransactionUse use) {
  return session.run(fmt::format("DELETE FROM {} WHERE {}", sql.table(backend::consumed_message_table),
                                 sql.is_key(consumer, business_key)),
                     use) > 0;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
