#include <txinbox/failed_messages.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "admin/failed_change.hpp"
#include "backend/connection_access.hpp"
#include "backend/lease_end.hpp"
#include "backend/session.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"
#include "base/utc_time.hpp"
#include "message/key.hpp"
#include "pool/inbox_session.hpp"
#include "tables/audit_table.hpp"
#include "tables/consumed_message_table.hpp"
#include "tables/failed_message_table.hpp"
#include "tables/list_cursor.hpp"
#include "types/enum_names.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

using detail::FailedRows;
using detail::RowState;

constexpr std::array states = {std::pair{to_string(RowState::consuming), FailedState::running},
                               std::pair{to_string(RowState::parked), FailedState::parked},
                               std::pair{to_string(RowState::torn), FailedState::torn},
                               std::pair{to_string(RowState::discarded), FailedState::discarded}};

constexpr detail::EnumNames<FailedState, FailedState::discarded> failed_state_names("failing", "running", "parked",
                                                                                    "torn", "discarded");

FailedState state_of(const std::optional<std::string>& row_state) {
  const auto* found = std::ranges::find_if(states, [&](const auto& each) { return row_state == each.first; });
  return found == states.end() ? FailedState::failing : found->second;
}

/// Returns the failed messages `f`, each with the row `c` of its key if there is one.
std::string failed_with_rows(const backend::Dialect& sql) {
  return fmt::format("{} f {}", sql.table(backend::failed_message_table),
                     sql.left_join_row(sql.table(backend::consumed_message_table), "c",
                                       "c.consumer = f.consumer AND c.business_key = f.business_key"));
}

/// Returns the state of the row `c`, or NULL if the next delivery runs: there is no row, or its lease has ended.
std::string present_state(const backend::Dialect& sql) {
  return fmt::format("CASE WHEN {} THEN NULL ELSE c.state END", backend::is_consuming_without_lease(sql));
}

std::string state_condition(const std::optional<FailedState>& state, const backend::Dialect& sql) {
  if (!state) return "coalesce(c.state, 'consuming') IN ('consuming', 'parked', 'torn')";
  if (*state == FailedState::failing) return fmt::format("{} IS NULL", present_state(sql));
  const auto* found = std::ranges::find_if(states, [&](const auto& each) { return each.second == *state; });
  return fmt::format("{} = '{}'", present_state(sql), found->first);
}

std::string condition_of(const FailedFilter& filter, const backend::Dialect& sql) {
  // An interrupted retry leaves a parked row whose count is zero.
  std::string condition =
      fmt::format("(f.attempts > 0 OR c.state <> 'consuming') AND {}", state_condition(filter.state, sql));
  if (!filter.consumer.empty()) condition += " AND f.consumer = " + sql.text(filter.consumer);
  if (!filter.business_key.empty()) condition += " AND f.business_key = " + sql.text(filter.business_key);
  if (!filter.error_class.empty()) condition += " AND f.last_error = " + sql.text(filter.error_class);
  if (filter.failed_until) condition += " AND f.last_failed_at <= " + sql.time(detail::utc_text(*filter.failed_until));
  if (filter.older_than.count() > 0) condition += " AND f.last_failed_at < " + sql.before_any(filter.older_than);
  return condition;
}

std::string cursor_of(const FailedMessage& message, const std::optional<std::string>& time) {
  return detail::cursor_text(
      detail::PagedList::failed,
      {.time = time.value_or(""), .consumer = message.consumer, .business_key = message.business_key});
}

/// Returns the conditions on the time for the rows behind `after`. The rows of the first condition come before those of
/// the second one. The rows without a time come last on each database, and the database can sort the others with its
/// index.
std::vector<std::string> sections_of(const FailedFilter& filter, const backend::Dialect& sql) {
  const std::string without_time = "f.last_failed_at IS NULL";
  if (filter.after.empty()) return {"f.last_failed_at IS NOT NULL", without_time};
  const detail::KeyCursor row = detail::read_key_cursor(detail::PagedList::failed, filter.after);
  std::vector<std::pair<std::string, std::string>> key = {{"f.consumer", sql.text(row.consumer)},
                                                          {"f.business_key", sql.text(row.business_key)}};
  if (row.time.empty()) return {without_time + " AND " + detail::is_behind(key, detail::ListOrder::descending)};
  key.insert(key.begin(), {"f.last_failed_at", sql.time(row.time)});
  return {detail::is_behind(key, detail::ListOrder::descending), without_time};
}

/// Returns what follows FROM: the rows of this section with a counted failure that the filter selects.
std::string counted_rows(const FailedFilter& filter, FailedRows rows, const std::string& section,
                         const backend::Dialect& sql) {
  return fmt::format("{} WHERE {} AND {}{}", failed_with_rows(sql), section, condition_of(filter, sql),
                     rows == FailedRows::with_payload ? " AND f.payload IS NOT NULL" : "");
}

/// Appends the rows of this section to `found`, which gets at most `filter.limit` in all.
void read_section(backend::Session& session, const FailedFilter& filter, FailedRows rows, const std::string& section,
                  std::vector<FailedMessage>& found) {
  const backend::Dialect& sql = session.dialect();
  for (backend::Row& row : session.read(
           fmt::format("SELECT f.consumer, f.business_key, f.message_id, {}, f.attempts, f.crashes, f.first_error, "
                       "{}, f.last_error, {}, {}, f.error_text, {}, {} FROM {} ORDER BY f.last_failed_at DESC, "
                       "f.consumer DESC, f.business_key DESC LIMIT {}",
                       present_state(sql), sql.utc_text("f.first_failed_at"), sql.utc_text("f.last_failed_at"),
                       sql.milliseconds_since("f.last_failed_at"), filter.payloads ? sql.hex_text("f.payload") : "NULL",
                       sql.exact_time("f.last_failed_at"), counted_rows(filter, rows, section, sql),
                       backend::limit_of(filter.limit - found.size())),
           14)) {
    FailedMessage& message = found.emplace_back();
    message.consumer = row[0].value_or("");
    message.business_key = row[1].value_or("");
    message.message_id = row[2].value_or("");
    message.state = state_of(row[3]);
    message.attempts = static_cast<int>(backend::number_in(row[4].value_or("")));
    message.crashes = static_cast<int>(backend::number_in(row[5].value_or("")));
    message.first_error = row[6].value_or("");
    message.first_failed_at = backend::time_in(row[7]);
    message.last_error = row[8].value_or("");
    message.last_failed_at = backend::time_in(row[9]);
    message.age = std::chrono::seconds(backend::number_in(row[10].value_or("")) / 1000);
    message.error_text = row[11].value_or("");
    if (row[12]) message.payload = detail::from_hex(*row[12]);
    message.cursor = cursor_of(message, row[13]);
  }
}

std::vector<FailedMessage> read_counted(backend::Session& session, const FailedFilter& filter, FailedRows rows) {
  std::vector<FailedMessage> found;
  for (const std::string& section : sections_of(filter, session.dialect())) {
    if (found.size() < filter.limit) read_section(session, filter, rows, section, found);
  }
  return found;
}

/// Finds a row that is parked, torn or discarded without a counted failure: a version without counts wrote it, or the
/// counting failed. It needs the key, because any other search would read the whole table.
std::vector<FailedMessage> read_uncounted(backend::Session& session, const FailedFilter& filter) {
  const backend::Dialect& sql = session.dialect();
  std::string condition = state_condition(filter.state, sql);
  if (filter.older_than.count() > 0) condition += " AND c.consumed_at < " + sql.before_any(filter.older_than);
  std::vector<FailedMessage> found;
  for (backend::Row& row : session.read(
           fmt::format(
               "SELECT c.message_id, c.state, {}, {}, {} FROM {} c WHERE c.consumer = {} AND c.business_key = {} AND "
               "c.state IN ('parked', 'torn', 'discarded') AND {} LIMIT {}",
               sql.utc_text("c.consumed_at"), sql.milliseconds_since("c.consumed_at"), sql.exact_time("c.consumed_at"),
               sql.table(backend::consumed_message_table), sql.text(filter.consumer), sql.text(filter.business_key),
               condition, backend::limit_of(filter.limit)),
           5)) {
    FailedMessage& message = found.emplace_back();
    message.consumer = filter.consumer;
    message.business_key = filter.business_key;
    message.message_id = row[0].value_or("");
    message.state = state_of(row[1]);
    message.first_failed_at = message.last_failed_at = backend::time_in(row[2]);
    message.age = std::chrono::seconds(backend::number_in(row[3].value_or("")) / 1000);
    message.cursor = cursor_of(message, row[4]);
  }
  return found;
}

void check_names(const FailedFilter& filter) {
  if (!filter.consumer.empty()) detail::check_consumer(filter.consumer);
  if (!filter.business_key.empty()) detail::check_business_key(filter.business_key);
}

std::vector<FailedMessage> read(backend::Session& session, const FailedFilter& filter, FailedRows rows) {
  check_names(filter);
  std::vector<FailedMessage> found = read_counted(session, filter, rows);
  // A message without a counted failure has no error class and no payload. It is alone on the first page.
  const bool one = !filter.consumer.empty() && !filter.business_key.empty() && filter.error_class.empty() &&
                   rows == FailedRows::all && filter.after.empty();
  return found.empty() && one ? read_uncounted(session, filter) : found;
}

bool discard(backend::Session& session, const FailedMessage& message) {
  const detail::ConsumedMessageTable table(session, backend::TransactionUse::open);
  // A failing message has a row only if it was consumed under a lease.
  return (message.state == FailedState::failing && table.insert_discarded(message.consumer, message.business_key)) ||
         table.discard(message.consumer, message.business_key);
}

}  // namespace

std::string_view to_string(FailedState state) noexcept { return failed_state_names[state]; }

std::vector<FailedMessage> list_failed(ConnectionRef connection, const FailedFilter& filter) {
  return read(*detail::InboxSession(detail::ConnectionAccess::of(connection)), filter, FailedRows::all);
}

std::vector<FailedGroup> group_failed(ConnectionRef connection, const FailedFilter& filter) {
  check_names(filter);
  const detail::InboxSession session(detail::ConnectionAccess::of(connection));
  const backend::Dialect& sql = session->dialect();
  const std::string rows = fmt::format(
      "SELECT f.consumer AS consumer, {} AS state, f.last_error AS last_error, f.first_failed_at AS first_failed_at, "
      "f.last_failed_at AS last_failed_at FROM {} WHERE {}",
      present_state(sql), failed_with_rows(sql), condition_of(filter, sql));
  std::vector<FailedGroup> groups;
  for (const backend::Row& row : session->read(
           fmt::format(
               "SELECT consumer, state, last_error, count(*), {}, {} FROM ({}) failed GROUP BY consumer, state, "
               "last_error ORDER BY count(*) DESC, consumer, state, last_error LIMIT {}",
               sql.utc_text("min(first_failed_at)"), sql.utc_text("max(last_failed_at)"), rows,
               backend::limit_of(filter.limit)),
           6)) {
    groups.push_back({.consumer = row[0].value_or(""),
                      .state = state_of(row[1]),
                      .error_class = row[2].value_or(""),
                      .messages = backend::number_in(row[3].value_or("")),
                      .first_failed_at = backend::time_in(row[4]),
                      .last_failed_at = backend::time_in(row[5])});
  }
  return groups;
}

FailedCount count_failed(ConnectionRef connection, const FailedFilter& filter) {
  check_names(filter);
  const detail::InboxSession session(detail::ConnectionAccess::of(connection));
  const backend::Dialect& sql = session->dialect();
  const auto rows = session->read(fmt::format("SELECT count(*), count(f.payload) FROM {} WHERE {}",
                                              failed_with_rows(sql), condition_of(filter, sql)),
                                  2);
  const auto number = [&](std::size_t column) {
    return static_cast<std::size_t>(backend::number_in(rows.at(0)[column].value_or("")));
  };
  return {.messages = number(0), .with_payload = number(1)};
}

std::size_t retry_failed(ConnectionRef connection, const FailedFilter& filter,
                         const std::optional<OperatorAction>& by) {
  return detail::change_failed(connection, filter, FailedRows::all, by, "retry", detail::let_run);
}

std::size_t discard_failed(ConnectionRef connection, const FailedFilter& filter,
                           const std::optional<OperatorAction>& by) {
  return detail::change_failed(connection, filter, FailedRows::all, by, "discard", discard);
}

namespace detail {

std::size_t change_failed(const ConnectionRef& connection, FailedFilter filter, FailedRows rows,
                          const std::optional<OperatorAction>& by, std::string_view action,
                          const FailedChange& change) {
  const InboxSession session(ConnectionAccess::of(connection), by);
  filter.payloads = false;
  std::size_t changed = 0;
  for (const FailedMessage& message : read(*session, filter, rows)) {
    const AuditEntry entry{
        .by = by, .action = action, .consumer = message.consumer, .business_key = message.business_key};
    if (change_with_audit(*session, entry, [&] { return change(*session, message); })) ++changed;
  }
  return changed;
}

/// The handler of a parked message does not run, so a marker is the rest of an earlier attempt and must not be counted
/// later. An attempt of a failing message may be running. Its marker stays, so that a crash of it is noticed. A lease
/// that has ended needs no change: the next delivery takes it over.
///
/// It locks the rows in the same order as a delivery does.
bool let_run(backend::Session& session, const FailedMessage& message) {
  const Message key{.business_key = message.business_key};
  const FailedMessageTable failed(session, message.consumer, key);
  const bool is_failing = message.state == FailedState::failing;
  if (message.state != FailedState::parked && !is_failing) return false;
  // A failing message can have been parked since it was read.
  const ConsumedMessageTable consumed(session, backend::TransactionUse::open);
  const bool was_parked = consumed.delete_parked(message.consumer, message.business_key);
  if (!was_parked && !is_failing) return false;
  return failed.reset(!was_parked) || was_parked;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
