#include "pool/inbox_session.hpp"

#include "backend/database.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

InboxSession::InboxSession(const backend::ConnectionPtr& connection)
    : session_(connection->database().attach(connection, backend::Ownership::caller)) {
  session_->unsafe_settings();  // this call reads the autocommit setting
  const OutsideTransaction outside(connection);
  session_->use_schema(verify_for_consuming(connection));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
