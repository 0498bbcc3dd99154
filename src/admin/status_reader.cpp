#include "admin/status_reader.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "tables/lease_list.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using backend::number_or_zero;
using backend::Row;
using Counts = std::map<std::string, std::int64_t>;

namespace {

std::string name_in(const Row& row) { return row[0].value_or(""); }

}  // namespace

// This is the only query that reads the whole table. It groups by the first column of the primary key, so nothing is
// sorted.
std::int64_t StatusReader::read_rows(const Notes& notes) {
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
  for (const Row& row :
       query(fmt::format("SELECT {} FROM {} WHERE {} GROUP BY consumer {}", columns,
                         dialect_.table(backend::consumed_message_table), is_meant("consumer"), backend::all_rows),
             11)) {
    ConsumerStatus& consumer = of(name_in(row));
    all += number_or_zero(row[1]);
    consumer.oldest = backend::time_in(row[2]);
    consumer.newest = backend::time_in(row[3]);
    consumer.consumed = number_or_zero(row[4]);
    consumer.consuming = number_or_zero(row[5]);
    consumer.parked = number_or_zero(row[6]);
    consumer.discarded = number_or_zero(row[7]);
    consumer.leases_held = number_or_zero(row[8]) - number_or_zero(row[9]);
    consumer.expired_leases = number_or_zero(row[9]);
    consumer.purge_backlog = number_or_zero(row[10]);
  }
  return all;
}

void StatusReader::read_last_minute() {
  for (const auto& [name, count] : consumed_within(std::chrono::minutes(1))) of(name).last_minute = count;
}

// It groups by an expression. With the column, SQLite would read the whole table in the order of the primary key.
Counts StatusReader::consumed_within(std::chrono::seconds time) const {
  constexpr std::string_view consumer = "coalesce(consumer, '')";
  Counts counts;
  for (const Row& row :
       query(fmt::format(
                 "SELECT {}, count(*) FROM {} WHERE state = 'consumed' AND consumed_at >= {} AND {} GROUP BY {} {}",
                 consumer, dialect_.table(backend::consumed_message_table), dialect_.before(time), is_meant("consumer"),
                 consumer, backend::all_rows),
             2)) {
    counts[name_in(row)] = number_or_zero(row[1]);
  }
  return counts;
}

// The state is a subquery and not a join: for a join, PostgreSQL can read the whole table. The grouping is outside of
// the subquery, so that each row is looked up once.
void StatusReader::read_failed(Parked parked) {
  for (const Row& row : query(
           fmt::format("SELECT f.consumer, f.state, count(*) FROM (SELECT f.consumer, (SELECT m.state FROM {} m WHERE "
                       "m.consumer = f.consumer AND m.business_key = f.business_key) AS state FROM {} f WHERE "
                       "f.attempts > 0 AND {}) f GROUP BY f.consumer, f.state {}",
                       dialect_.table(backend::consumed_message_table), dialect_.table(backend::failed_message_table),
                       is_meant("f.consumer"), backend::all_rows),
           3)) {
    ConsumerStatus& consumer = of(name_in(row));
    const std::string state = row[1].value_or(std::string(to_string(RowState::consuming)));
    if (state == to_string(RowState::consuming)) consumer.failed += number_or_zero(row[2]);
    const bool is_parked = state == to_string(RowState::parked) || state == to_string(RowState::torn);
    if (is_parked && parked == Parked::counted) consumer.parked += number_or_zero(row[2]);
  }
}

void StatusReader::read_conflicts() {
  for (const Row& row :
       query(fmt::format("SELECT consumer, sum(deliveries) FROM {} WHERE {} GROUP BY consumer {}",
                         dialect_.table(backend::conflicting_message_table), is_meant("consumer"), backend::all_rows),
             2)) {
    of(name_in(row)).conflicts = number_or_zero(row[1]);
  }
}

void StatusReader::find_names() {
  std::string last;
  for (bool more = true; more;) {
    const auto rows =
        query(fmt::format("SELECT consumer FROM {} WHERE consumer > {} AND {} ORDER BY consumer LIMIT 1",
                          dialect_.table(backend::consumed_message_table), dialect_.text(last), is_meant("consumer")),
              1);
    more = !rows.empty();
    if (more) last = of(name_in(rows.front())).consumer;
  }
}

void StatusReader::read_leases() {
  const LeaseList leases(dialect_, LeaseList::Index::used);
  for (const Row& row :
       query(fmt::format("SELECT {}, count(*), count(CASE WHEN {} > 0 THEN 1 END) FROM {} WHERE {} GROUP BY {} {}",
                         leases.consumer(), dialect_.milliseconds_since("lease_expires_at"), leases.table(),
                         leases.condition(consumer_), leases.consumer(), backend::all_rows),
             3)) {
    ConsumerStatus& consumer = of(name_in(row));
    consumer.expired_leases = number_or_zero(row[2]);
    consumer.leases_held = number_or_zero(row[1]) - number_or_zero(row[2]);
  }
}

void StatusReader::add(const Notes& notes) {
  for (const auto& [name, note] : notes) {
    if (name.empty() || (!consumer_.empty() && name != consumer_)) continue;
    ConsumerStatus& consumer = of(name);
    consumer.duplicates = note.duplicates;
    consumer.oldest_duplicate = note.oldest_duplicate;
    consumer.oldest_duplicate_at = note.oldest_duplicate_at;
    consumer.purged = note.purged;
  }
  const ConsumerNotes for_all = notes_of("", notes);
  for (auto& [name, consumer] : consumers_) {
    const ConsumerNotes own = notes_of(name, notes);
    consumer.retention = shorter(own.retention, for_all.retention);
    consumer.purged_at = std::max(own.purged_at, for_all.purged_at);
  }
}

std::vector<ConsumerStatus> StatusReader::take() {
  std::vector<ConsumerStatus> all;
  for (auto& [name, consumer] : consumers_) all.push_back(std::move(consumer));
  return all;
}

/// Returns the condition for the rows of the requested consumer.
std::string StatusReader::is_meant(std::string_view column) const {
  return consumer_.empty() ? "1 = 1" : fmt::format("{} = {}", column, dialect_.text(consumer_));
}

/// Returns the condition for consumed rows that are older than their consumer's retention. It does not use the index on
/// `consumed_at`: that index lacks the state, so the database would look up each row of a large backlog.
std::string StatusReader::to_be_purged(const Notes& notes) const {
  const auto for_all = notes_of("", notes).retention;
  std::string cases;
  for (const auto& [name, note] : notes) {
    if (name.empty() || !note.retention) continue;
    cases += fmt::format("WHEN {} THEN {} ", dialect_.text(name), dialect_.before(*shorter(note.retention, for_all)));
  }
  const std::string others = for_all ? dialect_.before(*for_all) : "NULL";
  if (cases.empty()) return for_all ? fmt::format("state = 'consumed' AND consumed_at < {}", others) : "1 = 0";
  return fmt::format("state = 'consumed' AND consumed_at < CASE consumer {}ELSE {} END", cases, others);
}

ConsumerStatus& StatusReader::of(const std::string& name) {
  ConsumerStatus& consumer = consumers_[name];
  consumer.consumer = name;
  return consumer;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
