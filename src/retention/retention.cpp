#include <txinbox/retention.hpp>

#include <algorithm>

#include <fmt/format.h>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "message/key.hpp"
#include "pool/inbox_session.hpp"
#include "pool/session_provider.hpp"
#include "retention/purge_run.hpp"
#include "schema/verification.hpp"
#include "tables/audit_table.hpp"
#include "tables/consumed_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

std::size_t count(const backend::ConnectionPtr& connection, std::chrono::seconds older_than,
                  const PurgeOptions& options) {
  const detail::InboxSession session(connection);
  const backend::Dialect& dialect = session->dialect();
  std::size_t rows = 0;
  for (const backend::PurgeTarget& target : detail::purge_targets(options.what, dialect, options.consumer)) {
    const backend::PurgeBatch batch{.target = target, .older_than = older_than, .limit = 1, .window = 1};
    const auto found = session->read(fmt::format("SELECT count(*) FROM {} WHERE {}", dialect.table(target.table),
                                                 backend::removal_condition(dialect, batch)),
                                     1);
    rows += static_cast<std::size_t>(backend::number_in(found.at(0).at(0).value_or("")));
  }
  return options.max_rows == 0 ? rows : std::min(rows, options.max_rows);
}

}  // namespace

bool forget(ConnectionRef connection, std::string_view consumer, std::string_view business_key,
            const std::optional<OperatorAction>& by) {
  detail::check_consumer(consumer);
  detail::check_business_key(business_key);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  if (by) {
    const detail::InboxSession session(sql, by);
    const detail::AuditEntry entry{.by = by, .action = "forget", .consumer = consumer, .business_key = business_key};
    return detail::change_with_audit(*session, entry, [&] {
      return detail::delete_message(*session, session->dialect(), consumer, business_key,
                                    backend::TransactionUse::open);
    });
  }
  const detail::OutsideTransaction outside(sql);
  const backend::Database& database = sql->database();
  const auto session = database.attach(sql, backend::Ownership::caller);
  session->unsafe_settings();  // this call reads the autocommit setting
  const auto dialect = database.dialect(detail::schema_of_tables(*database.catalog(sql)));
  return detail::delete_message(*session, *dialect, consumer, business_key, backend::TransactionUse::own);
}

std::size_t purge(ConnectionRef connection, std::chrono::seconds older_than, PurgeOptions options) {
  detail::check_age("older_than", older_than);
  detail::check(options);
  const backend::ConnectionPtr& sql = detail::ConnectionAccess::of(connection);
  if (options.dry_run) return count(sql, older_than, options);
  if (options.by) const detail::InboxSession checked(sql, options.by);
  const detail::OutsideTransaction outside(sql);
  detail::SessionProvider source(sql);
  return detail::PurgeRun(source, older_than, options).run();
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
