#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>

#include "backend/backend.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "inbox_findings.hpp"
#include "verification.hpp"

namespace txinbox::inline TXINBOX_ABI {
namespace {

using backend::Row;
using Consumers = std::map<std::string, ConsumerStatus>;

class StatusReader {
 public:
  StatusReader(soci::session& sql, const backend::Dialect& dialect) : sql_(sql), dialect_(dialect) {}

  /// The one query that reads the whole table. Grouped by what the primary key begins with: nothing is sorted.
  std::int64_t read_rows() {
    const std::string held = "state = 'consuming' AND lease_owner IS NOT NULL";
    const std::string run_out = fmt::format("{} AND {} > 0", held, dialect_.milliseconds_since("lease_expires_at"));
    std::string columns = fmt::format("consumer, count(*), {}, {}", dialect_.utc_text("min(consumed_at)"),
                                      dialect_.utc_text("max(consumed_at)"));
    for (const std::string& condition :
         {std::string("state = 'consumed'"), std::string("state = 'consuming'"),
          std::string("state IN ('parked', 'torn')"), std::string("state = 'discarded'"), held, run_out}) {
      columns += fmt::format(", count(CASE WHEN {} THEN 1 END)", condition);
    }
    std::int64_t all = 0;
    for (const Row& row : query(fmt::format("SELECT {} FROM {} GROUP BY consumer", columns,
                                            dialect_.table(backend::consumed_message_table)),
                                10)) {
      ConsumerStatus& consumer = of(row);
      all += number(row[1]);
      consumer.oldest = row[2].value_or("");
      consumer.newest = row[3].value_or("");
      consumer.consumed = number(row[4]);
      consumer.consuming = number(row[5]);
      consumer.parked = number(row[6]);
      consumer.discarded = number(row[7]);
      consumer.leases_held = number(row[8]) - number(row[9]);
      consumer.leases_run_out = number(row[9]);
    }
    return all;
  }

  void read_last_minute() {
    const std::string condition =
        fmt::format("state = 'consumed' AND consumed_at >= {}", dialect_.before(std::chrono::minutes(1)));
    for (const Row& row : count_rows(condition)) of(row).last_minute = number(row[1]);
  }

  void read_failed() {
    for (const Row& row :
         query(fmt::format("SELECT f.consumer, count(*) FROM {} f LEFT JOIN {} m ON m.consumer = f.consumer AND "
                           "m.business_key = f.business_key WHERE f.attempts > 0 AND (m.state IS NULL OR m.state NOT "
                           "IN ('consumed', 'parked', 'torn', 'discarded')) GROUP BY f.consumer",
                           dialect_.table(backend::failed_message_table),
                           dialect_.table(backend::consumed_message_table)),
               2)) {
      of(row).failed = number(row[1]);
    }
  }

  void read_conflicts() {
    for (const Row& row : query(fmt::format("SELECT consumer, sum(deliveries) FROM {} GROUP BY consumer",
                                            dialect_.table(backend::conflicting_message_table)),
                                2)) {
      of(row).conflicts = number(row[1]);
    }
  }

  /// Returns what is known of all consumers together.
  detail::ConsumerNotes read_notes() {
    detail::ConsumerNotes for_all;
    auto notes = detail::read_consumer_notes(sql_, dialect_);
    for (auto& [name, note] : notes) {
      if (name.empty()) {
        for_all = note;
        continue;
      }
      ConsumerStatus& consumer = consumers_[name];
      consumer.consumer = name;
      consumer.duplicates = note.duplicates;
      consumer.oldest_duplicate = note.oldest_duplicate;
      consumer.oldest_duplicate_at = note.oldest_duplicate_at;
      consumer.purged = note.purged;
    }
    for (auto& [name, consumer] : consumers_) {
      const auto found = notes.find(name);
      const detail::ConsumerNotes own = found == notes.end() ? detail::ConsumerNotes() : found->second;
      consumer.retention = detail::shorter(own.retention, for_all.retention);
      consumer.purged_at = std::max(own.purged_at, for_all.purged_at);
    }
    return for_all;
  }

  /// By the index on `consumed_at`: one query for those that have the same retention.
  void read_backlog() {
    std::map<std::chrono::seconds, std::string> by_retention;
    for (const auto& [name, consumer] : consumers_) {
      if (!consumer.retention) continue;
      std::string& names = by_retention[*consumer.retention];
      names += (names.empty() ? "" : ", ") + dialect_.text(name);
    }
    for (const auto& [retention, names] : by_retention) {
      const std::string condition = fmt::format("state = 'consumed' AND consumed_at < {} AND consumer IN ({})",
                                                dialect_.before(retention), names);
      for (const Row& row : count_rows(condition)) of(row).purge_backlog = number(row[1]);
    }
  }

  std::vector<ConsumerStatus> take() {
    std::vector<ConsumerStatus> all;
    for (auto& [name, consumer] : consumers_) all.push_back(std::move(consumer));
    return all;
  }

 private:
  std::vector<Row> query(const std::string& text, std::size_t columns) { return backend::query(sql_, text, columns); }

  std::vector<Row> count_rows(const std::string& condition) {
    return query(fmt::format("SELECT consumer, count(*) FROM {} WHERE {} GROUP BY consumer",
                             dialect_.table(backend::consumed_message_table), condition),
                 2);
  }

  ConsumerStatus& of(const Row& row) {
    ConsumerStatus& consumer = consumers_[row[0].value_or("")];
    consumer.consumer = row[0].value_or("");
    return consumer;
  }

  static std::int64_t number(const std::optional<std::string>& text) { return backend::number_in(text.value_or("")); }

  soci::session& sql_;
  const backend::Dialect& dialect_;
  Consumers consumers_;
};

}  // namespace

Status status(soci::session& sql) {
  const auto& database = backend::database_of(sql);
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog);
  const auto dialect = database.dialect(schema);
  Status status{.database = std::string(database.name()), .server_version = catalog->server_version(), .consumers = {}};
  status.schema_version = detail::examine(sql, *catalog, database.name()).version;
  status.bytes = catalog->table_bytes(schema);

  StatusReader reader(sql, *dialect);
  const auto has = [&](std::string_view table) { return catalog->find_schema(table) == schema; };
  status.rows = reader.read_rows();
  reader.read_last_minute();
  if (has(backend::failed_message_table)) reader.read_failed();
  if (has(backend::conflicting_message_table)) reader.read_conflicts();
  if (has(backend::consumer_table)) {
    status.purged = reader.read_notes().purged;
    reader.read_backlog();
  }
  status.consumers = reader.take();
  return status;
}

}  // namespace txinbox::inline TXINBOX_ABI
