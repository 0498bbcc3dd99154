#include <txinbox/operations.hpp>

#include <array>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "message/key.hpp"
#include "pool/inbox_session.hpp"
#include "schema/verification.hpp"
#include "tables/audit_table.hpp"
#include "tables/pause_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

void check_duration(std::chrono::seconds duration) {
  constexpr std::chrono::years longest(100);
  if (duration < std::chrono::seconds(1) || duration > longest) {
    throw Error(ErrorCode::invalid_argument, "the duration of a pause must be from 1 second to 100 years");
  }
}

}  // namespace

void pause_consumer(ConnectionRef connection, std::string_view consumer, const OperatorAction& by,
                    std::optional<std::chrono::seconds> duration) {
  detail::check_consumer(consumer);
  if (by.reason.empty()) throw Error(ErrorCode::invalid_argument, "a pause needs a reason");
  if (duration) check_duration(*duration);
  const std::optional audited(by);
  const detail::InboxSession session(detail::ConnectionAccess::of(connection), audited, backend::operations_tables);
  detail::change_with_audit(*session, {.by = audited, .action = "pause", .consumer = consumer}, [&] {
    detail::PauseTable(*session).set(consumer, by, duration);
    return true;
  });
}

bool resume_consumer(ConnectionRef connection, std::string_view consumer, const OperatorAction& by) {
  detail::check_consumer(consumer);
  const std::optional audited(by);
  const detail::InboxSession session(detail::ConnectionAccess::of(connection), audited, backend::operations_tables);
  return detail::change_with_audit(*session, {.by = audited, .action = "resume", .consumer = consumer},
                                   [&] { return detail::PauseTable(*session).remove(consumer); });
}

std::vector<ConsumerPause> list_pauses(ConnectionRef connection) {
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  const detail::NoNewTransaction no_new(sql);
  const backend::Database& database = sql->database();
  constexpr std::array tables{backend::pause_table};
  const auto dialect = database.dialect(detail::schema_of_tables(*database.catalog(sql), tables));
  std::vector<ConsumerPause> pauses;
  for (const backend::Row& row :
       backend::query(*sql,
                      fmt::format("SELECT consumer, {}, {}, reason, actor FROM {} WHERE {} ORDER BY consumer {}",
                                  dialect->utc_text("paused_at"), dialect->utc_text("resumes_at"),
                                  dialect->table(backend::pause_table), detail::is_paused(*dialect), backend::all_rows),
                      5)) {
    pauses.push_back({.consumer = row[0].value_or(""),
                      .paused_at = backend::time_in(row[1]),
                      .resumes_at = backend::time_in(row[2]),
                      .reason = row[3].value_or(""),
                      .actor = row[4].value_or("")});
  }
  return pauses;
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
