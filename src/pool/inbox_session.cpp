#include "pool/inbox_session.hpp"

#include "backend/registry.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

InboxSession::InboxSession(soci::session& sql)
    : session_(backend::database_of(sql).attach(sql, backend::Ownership::caller)) {
  session_->unsafe_settings();  // this call reads the autocommit setting
  const OutsideTransaction outside(sql);
  session_->use_schema(verify_for_consuming(sql));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
