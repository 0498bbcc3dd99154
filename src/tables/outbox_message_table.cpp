#include "tables/outbox_message_table.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "backend/database_error.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

int outbox_part(std::string_view key, std::string_view id) noexcept {
  // The hash is FNV-1a with 32 bits. Rows in the table depend on it, so it must never change.
  std::uint32_t hash = 2'166'136'261U;
  for (const char c : key.empty() ? id : key) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16'777'619U;
  }
  return static_cast<int>(hash % backend::outbox_parts);
}

namespace {

constexpr std::string_view insert_columns =
    "(id, aggregatetype, aggregateid, type, payload, headers, part, created_at)";

/// Returns the end of an INSERT that replaces a row with the same id. The new row is at the end of the outbox, and no
/// relay has tried it yet. A relay that has read the old row does not remove the new one, because their numbers differ.
std::string replace_existing_row(const backend::Dialect& sql) {
  static constexpr auto columns =
      std::to_array<std::string_view>({"aggregatetype", "aggregateid", "type", "payload", "headers", "part", "attempts",
                                       "last_error", "parked_at", "created_at"});
  return sql.replace_existing("id", "seq", columns);
}

std::string end_of_insert(const backend::Dialect& sql, IdOrigin origin) {
  switch (origin) {
    case IdOrigin::given:
      return sql.unless_exists("seq");  // so that a duplicate key is always a duplicate id
    case IdOrigin::random:
      return {};
    case IdOrigin::derived:
      break;
  }
  return replace_existing_row(sql);
}

std::string insert_outbox_row(const backend::Dialect& sql) {
  using enum backend::ParameterType;
  return fmt::format("INSERT INTO {} {} VALUES ({}, {}, {}, {}, {}, {}, {}, {})",
                     sql.table(backend::outbox_message_table), insert_columns, sql.parameter(uuid, 1),
                     sql.parameter(text, 2), sql.parameter(text, 3), sql.parameter(text, 4), sql.parameter(bytes, 5),
                     sql.parameter(text, 6), sql.parameter(integer, 7), sql.now());
}

constexpr backend::KeptStatement insert_row{insert_outbox_row};
constexpr backend::KeptStatement insert_or_replace_row{
    [](const backend::Dialect& sql) { return insert_outbox_row(sql).append(replace_existing_row(sql)); }};

}  // namespace

bool try_insert_outbox_row(backend::Session& session, const OutboxRow& row, IdOrigin origin) {
  using enum backend::ParameterType;
  const std::string part = std::to_string(outbox_part(row.key, row.id));
  const std::array<backend::Parameter, 7> values{{{row.id, uuid},
                                                  {row.topic},
                                                  {row.key},
                                                  {row.type},
                                                  {row.payload, bytes},
                                                  {backend::or_null(row.headers)},
                                                  {part, integer}}};
  return session.try_run_kept(origin == IdOrigin::derived ? insert_or_replace_row : insert_row, values);
}

std::string insert_outbox_rows(const backend::Dialect& sql, std::string_view table, std::span<const OutboxRow> rows,
                               IdOrigin origin) {
  std::string text = fmt::format("INSERT INTO {} {} VALUES ", table, insert_columns);
  for (const OutboxRow& row : rows) {
    text += fmt::format("{}('{}', {}, {}, {}, {}, {}, {}, {})", &row == rows.data() ? "" : ", ", row.id,
                        sql.text(row.topic), sql.text(row.key), sql.text(row.type), sql.bytes(row.payload),
                        sql.text_or_null(row.headers), outbox_part(row.key, row.id), sql.now());
  }
  return text += end_of_insert(sql, origin);
}

bool add_stored_payload(backend::Session& session, std::string_view topic, std::string_view consumer,
                        std::string_view business_key, std::string_view id) {
  const backend::Dialect& sql = session.dialect();
  return session.execute(fmt::format("INSERT INTO {} {} SELECT '{}', {}, business_key, {}, payload, NULL, {}, {} FROM "
                                     "{} WHERE {} AND payload IS NOT NULL",
                                     sql.table(backend::outbox_message_table), insert_columns, id, sql.text(topic),
                                     sql.text(""), outbox_part(business_key, id), sql.now(),
                                     sql.table(backend::failed_message_table), sql.is_key(consumer, business_key))) > 0;
}

namespace {

constexpr std::string_view key_index = "txinbox_outbox_message_aggregateid";

std::string texts(const backend::Dialect& sql, std::span<const std::string> values) {
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ", ") + sql.text(value);
  return list;
}

/// Returns the condition for these rows. Only the index on the id can serve it. With both columns, SQLite would look
/// for each pair of a number and an id, and PostgreSQL could search all of another index that contains the number.
std::string is_one_of(std::span<const OutboxRowKey> rows) {
  std::string numbers, ids;
  for (const OutboxRowKey& row : rows) {
    const std::string_view comma = &row == rows.data() ? "" : ", ";
    numbers += fmt::format("{}{}", comma, row.seq);
    ids += fmt::format("{}'{}'", comma, row.id);
  }
  return fmt::format("seq + 0 IN ({}) AND id IN ({})", numbers, ids);
}

/// Returns SQL for a value of each row: `sql_of` returns the SQL for a member of one of them.
template <class Member, class SqlOf>
std::string value_of_row(std::span<const FailedAttempt> failures, Member FailedAttempt::*member, const SqlOf& sql_of) {
  const auto has_first = [&](const FailedAttempt& each) { return each.*member == failures[0].*member; };
  if (std::ranges::all_of(failures, has_first)) return sql_of(failures[0].*member);
  std::string sql = "CASE seq";
  for (const FailedAttempt& each : failures) {
    sql += fmt::format(" WHEN {} THEN {}", each.row.seq, sql_of(each.*member));
  }
  return sql += " END";
}

/// Returns the condition for the rows of a query. The table has the alias m.
std::string condition_of(const backend::Dialect& sql, const OutboxQuery& query) {
  // PostgreSQL could use the index on the number for any condition on it, instead of the one on the key.
  std::string condition = "m.parked_at IS NULL";
  if (query.after > 0) condition += fmt::format(" AND m.seq > {}", query.after);
  if (query.up_to) condition += fmt::format(" AND m.seq <= {}", *query.up_to);
  if (!query.keys.empty()) condition += fmt::format(" AND m.aggregateid IN ({})", texts(sql, query.keys));
  if (!query.rows.empty()) {
    // Only the index on the number can serve this, in its order: the index on the key can contain many rows without a
    // key. No row has the number 0. It is there because the order of one number is any order.
    condition += fmt::format(" AND m.seq IN (0, {}) AND CASE WHEN m.aggregateid = {} THEN 1 ELSE 0 END = 1",
                             fmt::join(query.rows, ", "), sql.text(""));
  }
  if (query.parts.size() < backend::outbox_parts) {
    condition += fmt::format(" AND m.part IN ({})", fmt::join(query.parts, ", "));
  }
  return condition;
}

/// Returns the number up to which no row is missing. If another server has taken over, it may give the numbers of rows
/// again that it does not have.
/// The SELECT is evaluated once for the statement.
std::string end_of_known_rows(const backend::Dialect& sql, std::string_view table, const OutboxQuery& query) {
  if (query.watermark.seq == 0) return "0";
  return fmt::format("(SELECT CASE WHEN {} = {} THEN {} ELSE 0 END)", sql.server_number(table), query.watermark.server,
                     query.watermark.seq);
}

/// Returns the order of the rows of a query. The rows of some keys are found by the index on the key, and then sorted:
/// with the order of the primary key, a database could read the whole table to find them.
std::string_view order_of(const OutboxQuery& query) { return query.keys.empty() ? "m.seq" : "m.seq + 0"; }

}  // namespace

// The innermost select finds the rows. The next ones look for earlier rows of their keys, once for each key: the index
// can contain many removed rows of a key, which each look reads. Then the sizes of the payloads are added up. Only the
// outermost select reads payloads, so that no other step has to store them.
//
// The check of the key is outside of the select with the limit, and has a limit of its own. So PostgreSQL knows that
// the check is cheap, even without statistics of the table. Otherwise PostgreSQL compiles the statement each time
// (JIT).
std::string select_outbox_rows(const backend::Dialect& sql, std::string_view table, const OutboxQuery& query) {
  std::string batch = fmt::format(
      "SELECT m.seq, m.{} AS address, m.aggregateid, length(m.payload) AS bytes, 0 AS is_late "
      "FROM {} m{} WHERE {} ORDER BY {} LIMIT {}",
      sql.row_address("seq"), table, query.keys.empty() ? std::string() : sql.by_index(key_index),
      condition_of(sql, query), order_of(query), query.limit);
  if (query.after > 0) {
    const std::string has_earlier = fmt::format(
        "(SELECT e.seq FROM {} e{} WHERE {} AND e.parked_at IS NULL ORDER BY e.aggregateid, e.seq LIMIT 1) IS NOT NULL",
        table, sql.by_index(key_index),
        sql.in_range("e.aggregateid", "m.aggregateid", "e.seq", end_of_known_rows(sql, table, query),
                     std::to_string(query.after)));
    // The first row of a key looks, and the others take over what it has found. The limit makes PostgreSQL look before
    // it takes over: otherwise it would look for each row. MariaDB would read all rows of the key for each row if
    // first_value() were max().
    batch = fmt::format(
        "SELECT m.seq, m.address, m.bytes, "
        "first_value(m.is_late) OVER (PARTITION BY m.aggregateid ORDER BY m.seq) AS is_late FROM "
        "(SELECT m.seq, m.address, m.aggregateid, m.bytes, "
        "CASE WHEN m.aggregateid <> {} AND m.place = 1 AND {} THEN 1 ELSE 0 END AS is_late FROM "
        "(SELECT m.seq, m.address, m.aggregateid, m.bytes, "
        "row_number() OVER (PARTITION BY m.aggregateid ORDER BY m.seq) AS place FROM ({}) m) m LIMIT {}) m",
        sql.text(""), has_earlier, batch, query.limit);
  }
  return fmt::format(
      "SELECT m.seq, m.id, m.aggregatetype, m.aggregateid, m.type, m.attempts, s.is_late, "
      "CASE WHEN s.is_late = 0 THEN {payload} END, CASE WHEN s.is_late = 0 THEN m.headers END FROM "
      "(SELECT m.seq, m.address, m.is_late, "
      "sum(m.bytes) OVER (ORDER BY m.seq ROWS UNBOUNDED PRECEDING) - m.bytes AS preceding_bytes FROM "
      "(SELECT m.seq, m.address, m.is_late, CASE WHEN m.is_late = 0 THEN m.bytes ELSE 0 END AS bytes FROM ({batch}) m) "
      "m) s JOIN {table} m ON m.{address} = s.address WHERE s.preceding_bytes < {bytes} ORDER BY s.seq",
      fmt::arg("payload", sql.hex_text("m.payload")), fmt::arg("batch", batch), fmt::arg("table", table),
      fmt::arg("address", sql.row_address("seq")), fmt::arg("bytes", most_payload_bytes));
}

OutboxMessageTable::OutboxMessageTable(backend::Session& session)
    : session_(session), table_(session.dialect().table(backend::outbox_message_table)) {}

std::vector<OutboxRow> OutboxMessageTable::read(const OutboxQuery& query) const {
  std::vector<OutboxRow> rows;
  for (backend::Row& row : session_.read(select_outbox_rows(session_.dialect(), table_, query), 9)) {
    const auto take = [&](std::size_t column) { return std::move(row[column]).value_or(""); };
    rows.push_back({.seq = backend::number_in(take(0)),
                    .id = take(1),
                    .topic = take(2),
                    .key = take(3),
                    .type = take(4),
                    .payload = from_hex(take(7)),
                    .headers = take(8),
                    .attempts = static_cast<int>(backend::number_in(take(5))),
                    .is_late = row[6] != "0"});
  }
  return rows;
}

std::vector<OutboxRow> OutboxMessageTable::list(const OutboxQuery& query) const {
  std::vector<OutboxRow> rows;
  for (backend::Row& row :
       session_.read(fmt::format("SELECT m.seq, m.id, m.aggregateid FROM {} m WHERE {} ORDER BY m.seq LIMIT {}", table_,
                                 condition_of(session_.dialect(), query), query.limit),
                     3)) {
    const auto take = [&](std::size_t column) { return std::move(row[column]).value_or(""); };
    rows.push_back({.seq = backend::number_in(take(0)), .id = take(1), .key = take(2)});
  }
  return rows;
}

std::optional<OutboxWriters> OutboxMessageTable::writers() const {
  const std::string select = session_.dialect().open_writers(table_);
  if (select.empty()) return std::nullopt;
  try {
    OutboxWriters writers;
    for (backend::Row& row : session_.read(select, 3)) {
      writers.server = backend::number_in(row[0].value_or("0"));
      if (!row[1]) continue;
      writers.transactions.push_back(std::move(*row[1]));
      if (row[2] == "1") writers.has_prepared = true;
    }
    return writers;
  } catch (const DatabaseError&) {
    const auto error = backend::current_database_error();
    if (error && error->error_class() == backend::ErrorClass::other) return std::nullopt;  // a missing privilege
    throw;
  }
}

void OutboxMessageTable::remove(std::span<const OutboxRowKey> rows) const {
  if (!rows.empty()) session_.change(fmt::format("DELETE FROM {} WHERE {}", table_, is_one_of(rows)));
}

bool OutboxMessageTable::remove_if(const OutboxRowKey& row, std::string_view condition) const {
  return session_.execute(
             fmt::format("DELETE FROM {} WHERE {} AND {}", table_, is_one_of(std::span(&row, 1)), condition)) > 0;
}

bool OutboxMessageTable::retry(const OutboxRowKey& row) const {
  return session_.execute(fmt::format("UPDATE {} SET parked_at = NULL, attempts = 0 WHERE {} AND parked_at IS NOT NULL",
                                      table_, is_one_of(std::span(&row, 1)))) > 0;
}

void OutboxMessageTable::record_failures(std::span<const FailedAttempt> failures) const {
  if (failures.empty()) return;
  const backend::Dialect& sql = session_.dialect();
  std::vector<OutboxRowKey> rows;
  std::string parked;
  for (const FailedAttempt& each : failures) {
    rows.push_back(each.row);
    if (each.park) parked += fmt::format("{}{}", parked.empty() ? "" : ", ", each.row.seq);
  }
  const std::string attempts =
      value_of_row(failures, &FailedAttempt::attempts, [](int number) { return std::to_string(number); });
  const std::string error =
      value_of_row(failures, &FailedAttempt::error, [&](const std::string& text) { return sql.text_or_null(text); });
  if (!parked.empty()) {
    parked = fmt::format(", parked_at = CASE WHEN seq IN ({}) THEN {} ELSE parked_at END", parked, sql.now());
  }
  session_.change(fmt::format("UPDATE {} SET attempts = {}, last_error = {}{} WHERE {}", table_,
                              sql.greater("attempts", attempts), error, parked, is_one_of(rows)));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
