#include "pool/inbox_session.hpp"

#include <algorithm>

#include "backend/database.hpp"
#include "schema/verification.hpp"
#include "tables/audit_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

InboxSession::InboxSession(const backend::ConnectionPtr& connection)
    : session_(connection->database().attach(connection, backend::Ownership::caller)) {
  session_->unsafe_settings();  // this call reads the autocommit setting
  const OutsideTransaction outside(connection);
  session_->use_schema(verify_for_consuming(connection));
}

InboxSession::InboxSession(const backend::ConnectionPtr& connection, const std::optional<OperatorAction>& by,
                           std::span<const std::string_view> tables)
    : InboxSession(prepared_for(connection, by, tables)) {}

const backend::ConnectionPtr& InboxSession::prepared_for(const backend::ConnectionPtr& connection,
                                                         const std::optional<OperatorAction>& by,
                                                         std::span<const std::string_view> tables) {
  if (!by) return connection;
  check_operator_action(*by);
  const OutsideTransaction outside(connection);
  // The pauses of all consumers lie in the first shard, messages do not.
  const bool has_pauses = std::ranges::find(tables, backend::pause_table) != tables.end();
  if (has_pauses) {
    refuse_one_shard(connection);
  } else {
    refuse_all_shards(connection);
  }
  schema_of_tables(*connection->database().catalog(connection), tables);
  return connection;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
