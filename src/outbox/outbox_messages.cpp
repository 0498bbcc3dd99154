#include <txinbox/outbox_messages.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "backend/session.hpp"
#include "backend/table_check.hpp"
#include "base/hex.hpp"
#include "base/uuid.hpp"
#include "pool/inbox_session.hpp"
#include "schema/verification.hpp"
#include "tables/audit_table.hpp"
#include "tables/list_cursor.hpp"
#include "tables/outbox_message_table.hpp"
#include "types/enum_names.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

constexpr detail::EnumNames<OutboxState, OutboxState::parked> state_names("waiting", "failing", "parked");

/// Returns the condition for the rows in this state, as SQL.
std::string condition_of(OutboxState state) {
  switch (state) {
    case OutboxState::waiting:
      return "parked_at IS NULL AND attempts = 0";
    case OutboxState::failing:
      return "parked_at IS NULL AND attempts > 0";
    case OutboxState::parked:
      break;
  }
  return "parked_at IS NOT NULL";
}

std::string condition_of(const OutboxFilter& filter, const backend::Dialect& sql) {
  std::string condition = filter.state ? condition_of(*filter.state) : "1 = 1";
  if (!filter.id.empty()) {
    const auto id = detail::parse_uuid(filter.id);
    if (!id) throw Error(ErrorCode::invalid_argument, "the id of the message is not a UUID");
    condition += fmt::format(" AND id = '{}'", *id);
  }
  if (!filter.topic.empty()) condition += " AND aggregatetype = " + sql.text(filter.topic);
  if (!filter.key.empty()) condition += " AND aggregateid = " + sql.text(filter.key);
  return condition;
}

std::int64_t number(const std::optional<std::string>& text) { return backend::number_in(text.value_or("")); }

struct Listed {
  detail::OutboxRowKey row;
  OutboxMessageInfo message;
};

/// Returns the number of the row behind which the list begins.
std::int64_t start_of(const OutboxFilter& filter) {
  return filter.after.empty() ? 0 : detail::read_number_cursor(detail::PagedList::outbox, filter.after);
}

/// Returns the rows behind the row `after`.
std::vector<Listed> read(backend::Session& session, const OutboxFilter& filter, std::int64_t after) {
  const backend::Dialect& sql = session.dialect();
  std::vector<Listed> found;
  for (backend::Row& row : session.read(
           fmt::format("SELECT seq, id, aggregatetype, aggregateid, type, attempts, last_error, {}, {}, {}, {} FROM {} "
                       "WHERE seq > {} AND {} ORDER BY seq LIMIT {}",
                       sql.utc_text("created_at"), sql.milliseconds_since("created_at"), sql.utc_text("parked_at"),
                       filter.payloads ? sql.hex_text("payload") : "NULL", sql.table(backend::outbox_message_table),
                       after, condition_of(filter, sql), backend::limit_of(filter.limit)),
           11)) {
    const auto take = [&](std::size_t column) { return std::move(row[column]).value_or(""); };
    OutboxMessageInfo message{.id = take(1),
                              .topic = take(2),
                              .key = take(3),
                              .type = take(4),
                              .attempts = static_cast<int>(number(row[5])),
                              .last_error = take(6),
                              .created_at = backend::time_in(row[7]),
                              .age = std::chrono::milliseconds(number(row[8])),
                              .parked_at = backend::time_in(row[9])};
    if (message.parked_at) {
      message.state = OutboxState::parked;
    } else if (message.attempts > 0) {
      message.state = OutboxState::failing;
    }
    if (row[10]) message.payload = detail::from_hex(*row[10]);
    detail::OutboxRowKey key{.seq = number(row[0]), .id = message.id};
    message.cursor = detail::cursor_text(detail::PagedList::outbox, key.seq);
    found.push_back({std::move(key), std::move(message)});
  }
  return found;
}

/// A change of one message in the open transaction. It returns whether it has changed it.
struct Change {
  std::string_view action;
  bool (*run)(const detail::OutboxMessageTable&, const Listed&);
};

/// Changes each message in a transaction of its own, because a relay also locks one message after the other. It goes on
/// until it has changed as many as the filter says, or has tried all: a relay can remove what it has read.
std::size_t change_each(const ConnectionRef& connection, OutboxFilter filter, const std::optional<OperatorAction>& by,
                        const Change& change) {
  constexpr std::size_t at_once = 1'000;
  const detail::InboxSession session(detail::ConnectionAccess::of(connection), by);
  const detail::OutboxMessageTable table(*session);
  const std::size_t most = filter.limit;
  filter.payloads = false;
  std::size_t changed = 0;
  std::int64_t after = start_of(filter);
  for (bool more = true; more && changed < most;) {
    filter.limit = std::min(at_once, most - changed);
    const std::vector<Listed> found = read(*session, filter, after);
    for (const Listed& each : found) {
      const detail::AuditEntry entry{.by = by, .action = change.action, .business_key = each.message.id};
      if (detail::change_with_audit(*session, entry, [&] { return change.run(table, each); })) ++changed;
    }
    more = found.size() == filter.limit;
    if (more) after = found.back().row.seq;
  }
  return changed;
}

bool retry(const detail::OutboxMessageTable& table, const Listed& each) { return table.retry(each.row); }

/// Leaves a message that has changed its state since.
bool discard(const detail::OutboxMessageTable& table, const Listed& each) {
  return table.remove_if(each.row, condition_of(each.message.state));
}

void read_relays(backend::Session& session, OutboxStatus& status) {
  const backend::Dialect& sql = session.dialect();
  const std::string relays = sql.table(backend::outbox_relay_table);
  const std::string parts = sql.table(backend::outbox_part_table);
  status.free_parts = 0;
  for (const backend::Row& row : session.read(fmt::format("SELECT count(*) FROM {}", parts), 1)) {
    status.free_parts = static_cast<int>(number(row[0]));
  }
  for (backend::Row& row : session.read(
           fmt::format("SELECT r.name, {}, {}, (SELECT count(*) FROM {} p WHERE p.owner = r.token) FROM {} r ORDER BY "
                       "r.name {}",
                       sql.utc_text("r.started_at"), sql.milliseconds_since("r.lease_expires_at"), parts, relays,
                       backend::all_rows),
           4)) {
    OutboxRelayInfo& relay = status.relays.emplace_back();
    relay.name = row[0].value_or("");
    relay.started_at = backend::time_in(row[1]);
    relay.remaining = std::chrono::milliseconds(-number(row[2]));
    relay.parts = static_cast<int>(number(row[3]));
    if (relay.remaining.count() > 0) status.free_parts -= relay.parts;
  }
}

}  // namespace

std::string_view to_string(OutboxState state) noexcept { return state_names[state]; }

OutboxStatus outbox_status(ConnectionRef connection) {
  const backend::ConnectionPtr& reference = detail::ConnectionAccess::of(connection);
  const detail::InboxSession session(reference);
  detail::refuse_all_shards(reference);
  const backend::Dialect& sql = session->dialect();
  const std::string table = sql.table(backend::outbox_message_table);
  OutboxStatus status;
  for (const backend::Row& row :
       session->read(fmt::format("SELECT sum(CASE WHEN {} THEN 1 ELSE 0 END), sum(CASE WHEN {} THEN 1 ELSE 0 END), "
                                 "sum(CASE WHEN {} THEN 1 ELSE 0 END) FROM {}",
                                 condition_of(OutboxState::waiting), condition_of(OutboxState::failing),
                                 condition_of(OutboxState::parked), table),
                     3)) {
    status.waiting = number(row[0]);
    status.failing = number(row[1]);
    status.parked = number(row[2]);
  }
  for (const backend::Row& row :
       session->read(fmt::format("SELECT {}, {} FROM {} WHERE parked_at IS NULL ORDER BY seq LIMIT 1",
                                 sql.utc_text("created_at"), sql.milliseconds_since("created_at"), table),
                     2)) {
    status.oldest = backend::time_in(row[0]);
    status.oldest_age = std::chrono::milliseconds(number(row[1]));
  }
  read_relays(*session, status);
  return status;
}

std::vector<OutboxMessageInfo> list_outbox(ConnectionRef connection, const OutboxFilter& filter) {
  const detail::InboxSession session(detail::ConnectionAccess::of(connection));
  std::vector<OutboxMessageInfo> messages;
  for (Listed& each : read(*session, filter, start_of(filter))) messages.push_back(std::move(each.message));
  return messages;
}

std::size_t retry_outbox(ConnectionRef connection, const OutboxFilter& filter,
                         const std::optional<OperatorAction>& by) {
  OutboxFilter parked = filter;
  parked.state = OutboxState::parked;
  return change_each(connection, parked, by, {"outbox_retry", retry});
}

std::size_t discard_outbox(ConnectionRef connection, const OutboxFilter& filter,
                           const std::optional<OperatorAction>& by) {
  constexpr Change change{"outbox_discard", discard};
  if (filter.state) return change_each(connection, filter, by, change);
  std::size_t removed = 0;
  for (const OutboxState state : {OutboxState::parked, OutboxState::failing}) {
    OutboxFilter one = filter;
    one.state = state;
    one.limit = filter.limit - removed;
    removed += change_each(connection, one, by, change);
  }
  return removed;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
