#include "tables/consumer_table.hpp"

#include <string>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void ConsumerTable::add_duplicates(std::int64_t count, std::optional<std::chrono::milliseconds> age) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::consumer_table);
  const std::string consumer = sql.text(consumer_);
  std::string older;  // assign the time first: MariaDB and MySQL assign from left to right
  if (age) {
    older = fmt::format(
        ", oldest_duplicate_at = CASE WHEN coalesce(oldest_duplicate, -1) < {0} THEN {1} ELSE oldest_duplicate_at END"
        ", oldest_duplicate = CASE WHEN coalesce(oldest_duplicate, -1) < {0} THEN {0} ELSE oldest_duplicate END",
        age->count(), sql.now());
  }
  const std::string update =
      fmt::format("UPDATE {} SET duplicates = duplicates + {}{} WHERE consumer = {}", table, count, older, consumer);
  const std::string insert = fmt::format(
      "INSERT INTO {} (consumer, duplicates, oldest_duplicate, oldest_duplicate_at) VALUES ({}, {}, {}, {})", table,
      consumer, count, age ? std::to_string(age->count()) : "NULL", age ? sql.now() : "NULL");
  backend::change_or_insert(session_, update, insert, {"consumer"});
}

void ConsumerTable::record_purge(std::chrono::seconds retention, std::size_t removed, bool may_insert) const {
  const backend::Dialect& sql = session_.dialect();
  const std::string table = sql.table(backend::consumer_table);
  const std::string consumer = sql.text(consumer_);
  const std::string update =
      fmt::format("UPDATE {} SET retention = {}, purged = purged + {}, purged_at = {} WHERE consumer = {}", table,
                  retention.count(), removed, sql.now(), consumer);
  if (!may_insert) {
    session_.change(update);
    return;
  }
  backend::change_or_insert(
      session_, update,
      fmt::format("INSERT INTO {} (consumer, retention, purged, purged_at) VALUES ({}, {}, {}, {})", table, consumer,
                  retention.count(), removed, sql.now()),
      {"consumer"});
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
