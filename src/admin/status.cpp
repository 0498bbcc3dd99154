#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <txinbox/inspect.hpp>

#include "admin/inbox_findings.hpp"
#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using backend::Row;
using Consumers = std::map<std::string, ConsumerStatus>;

class StatusReader {
 public:
  /// `consumer` is empty for all consumers.
  StatusReader(const backend::NativeConnection& sql, const backend::Dialect& dialect, std::string_view consumer)
      : sql_(sql), dialect_(dialect), consumer_(consumer) {}

  /// Runs the only query that reads the whole table. It groups by the first column of the primary key, so nothing is
  /// sorted.
  std::int64_t read_rows(const detail::Notes& notes) {
    const std::string held = "state = 'consuming' AND lease_owner IS NOT NULL";
    const std::string expired = fmt::format("{} AND {} > 0", held, dialect_.milliseconds_since("lease_expires_at"));
    std::string columns = fmt::format("consumer, count(*), {}, {}", dialect_.utc_text("min(consumed_at)"),
                                      dialect_.utc_text("max(consumed_at)"));
    for (const std::string& condition : {std::string("state = 'consumed'"), std::string("state = 'consuming'"),
                                         std::string("state IN ('parked', 'torn')"), std::string("state = 'discarded'"),
                                         held, expired, to_be_purged(notes)}) {
      columns += fmt::format(", count(CASE WHEN {} THEN 1 END)", condition);
    }
    std::int64_t all = 0;
    for (const Row& row : query(fmt::format("SELECT {} FROM {} WHERE {} GROUP BY consumer", columns,
                                            dialect_.table(backend::consumed_message_table), is_meant("consumer")),
                                11)) {
      ConsumerStatus& consumer = of(row);
      all += number(row[1]);
      consumer.oldest = backend::time_in(row[2]);
      consumer.newest = backend::time_in(row[3]);
      consumer.consumed = number(row[4]);
      consumer.consuming = number(row[5]);
      consumer.parked = number(row[6]);
      consumer.discarded = number(row[7]);
      consumer.leases_held = number(row[8]) - number(row[9]);
      consumer.expired_leases = number(row[9]);
      consumer.purge_backlog = number(row[10]);
    }
    return all;
  }

  void read_last_minute() {
    for (const Row& row : query(fmt::format("SELECT consumer, count(*) FROM {} WHERE state = 'consumed' AND "
                                            "consumed_at >= {} AND {} GROUP BY consumer",
                                            dialect_.table(backend::consumed_message_table),
                                            dialect_.before(std::chrono::minutes(1)), is_meant("consumer")),
                                2)) {
      of(row).last_minute = number(row[1]);
    }
  }

  void read_failed() {
    for (const Row& row :
         query(fmt::format("SELECT f.consumer, count(*) FROM {} f LEFT JOIN {} m ON m.consumer = f.consumer AND "
                           "m.business_key = f.business_key WHERE f.attempts > 0 AND (m.state IS NULL OR m.state NOT "
                           "IN ('consumed', 'parked', 'torn', 'discarded')) AND {} GROUP BY f.consumer",
                           dialect_.table(backend::failed_message_table),
                           dialect_.table(backend::consumed_message_table), is_meant("f.consumer")),
               2)) {
      of(row).failed = number(row[1]);
    }
  }

  void read_conflicts() {
    for (const Row& row : query(fmt::format("SELECT consumer, sum(deliveries) FROM {} WHERE {} GROUP BY consumer",
                                            dialect_.table(backend::conflicting_message_table), is_meant("consumer")),
                                2)) {
      of(row).conflicts = number(row[1]);
    }
  }

  void add(const detail::Notes& notes) {
    for (const auto& [name, note] : notes) {
      if (name.empty() || (!consumer_.empty() && name != consumer_)) continue;
      ConsumerStatus& consumer = consumers_[name];
      consumer.consumer = name;
      consumer.duplicates = note.duplicates;
      consumer.oldest_duplicate = note.oldest_duplicate;
      consumer.oldest_duplicate_at = note.oldest_duplicate_at;
      consumer.purged = note.purged;
    }
    const detail::ConsumerNotes for_all = detail::notes_of("", notes);
    for (auto& [name, consumer] : consumers_) {
      const detail::ConsumerNotes own = detail::notes_of(name, notes);
      consumer.retention = detail::shorter(own.retention, for_all.retention);
      consumer.purged_at = std::max(own.purged_at, for_all.purged_at);
    }
  }

  std::vector<ConsumerStatus> take() {
    std::vector<ConsumerStatus> all;
    for (auto& [name, consumer] : consumers_) all.push_back(std::move(consumer));
    return all;
  }

 private:
  std::vector<Row> query(const std::string& text, std::size_t columns) { return backend::query(sql_, text, columns); }

  /// Returns the condition for the rows of the requested consumer.
  std::string is_meant(std::string_view column) const {
    return consumer_.empty() ? "1 = 1" : fmt::format("{} = {}", column, dialect_.text(consumer_));
  }

  /// Returns the condition for consumed rows that are older than their consumer's retention. It does not use the index
  /// on `consumed_at`: that index lacks the state, so the database would look up each row of a large backlog.
  std::string to_be_purged(const detail::Notes& notes) const {
    const auto for_all = detail::notes_of("", notes).retention;
    std::string cases;
    for (const auto& [name, note] : notes) {
      if (name.empty() || !note.retention) continue;
      cases += fmt::format("WHEN {} THEN {} ", dialect_.text(name),
                           dialect_.before(*detail::shorter(note.retention, for_all)));
    }
    const std::string others = for_all ? dialect_.before(*for_all) : "NULL";
    if (cases.empty()) return for_all ? fmt::format("state = 'consumed' AND consumed_at < {}", others) : "1 = 0";
    return fmt::format("state = 'consumed' AND consumed_at < CASE consumer {}ELSE {} END", cases, others);
  }

  ConsumerStatus& of(const Row& row) {
    ConsumerStatus& consumer = consumers_[row[0].value_or("")];
    consumer.consumer = row[0].value_or("");
    return consumer;
  }

  static std::int64_t number(const std::optional<std::string>& text) { return backend::number_in(text.value_or("")); }

  const backend::NativeConnection& sql_;
  const backend::Dialect& dialect_;
  const std::string consumer_;
  Consumers consumers_;
};

}  // namespace

InboxStatus inbox_status(ConnectionRef connection, std::string_view consumer) {
  if (!consumer.empty()) detail::check_consumer(consumer);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog, backend::inbox_tables);
  const auto dialect = database.dialect(schema);
  InboxStatus status{
      .database = std::string(database.name()), .server_version = catalog->server_version(), .consumers = {}};
  status.schema_version = detail::examine(*catalog, database.name()).version;
  status.encryption = catalog->transport().encryption;
  status.bytes = catalog->table_bytes(schema);

  StatusReader reader(*sql, *dialect, consumer);
  const auto notes = detail::read_notes(*sql, *dialect);
  status.rows = reader.read_rows(notes);
  reader.read_last_minute();
  reader.read_failed();
  reader.read_conflicts();
  reader.add(notes);
  status.purged = detail::notes_of("", notes).purged;
  status.consumers = reader.take();
  return status;
}

bool has_consumer(ConnectionRef connection, std::string_view consumer) {
  detail::check_consumer(consumer);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const backend::Database& database = sql->database();
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog, backend::inbox_tables);
  const auto dialect = database.dialect(schema);
  // The primary key of each table begins with the consumer, so each query reads little.
  return std::ranges::any_of(backend::inbox_tables, [&](std::string_view table) {
    return !backend::query(*sql,
                           fmt::format("SELECT consumer FROM {} WHERE consumer = {} LIMIT 1", dialect->table(table),
                                       dialect->text(consumer)),
                           1)
                .empty();
  });
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
