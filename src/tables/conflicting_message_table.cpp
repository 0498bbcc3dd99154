#include "tables/conflicting_message_table.hpp"

#include <string>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void record_conflict(backend::Session& session, std::string_view consumer, const Message& message,
                     std::string_view content_hash, std::size_t most) {
  if (most == 0) return;
  const backend::Dialect& sql = session.dialect();
  const std::string table = sql.table(backend::conflicting_message_table);
  const std::string key = sql.is_key(consumer, message.business_key);
  const std::string id = sql.text_or_null(message.message_id);
  const std::string hash = sql.bytes(content_hash);
  backend::change_or_insert(
      session,
      fmt::format(
          "UPDATE {} SET deliveries = deliveries + 1, message_id = {}, last_at = {} WHERE {} AND content_hash = {}",
          table, id, sql.now(), key, hash),
      fmt::format("INSERT INTO {} (consumer, business_key, content_hash, original_hash, message_id, "
                  "original_message_id, reason, deliveries, first_at, last_at) "
                  "SELECT consumer, business_key, {}, content_hash, {}, message_id, state, 1, {}, {} FROM {} WHERE {} "
                  "AND content_hash IS NOT NULL AND (SELECT count(*) FROM {} recorded WHERE {}) < {}",
                  table, hash, id, sql.now(), sql.now(), sql.table(backend::consumed_message_table), key, table, key,
                  most),
      {"consumer, business_key, content_hash"});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
