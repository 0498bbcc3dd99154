#include "pool/pool_session_factory.hpp"

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

soci::details::session_backend* PoolSessionFactory::make_session(const soci::connection_parameters& parameters) const {
  if (!may_connect_) {
    throw Error(ErrorCode::transaction_lost,
                "a handler must not reconnect the session that it is given: the transaction with its message's claim "
                "ends with the connection; let the error that told of the lost connection through to txinbox");
  }
  return database_.make_session(parameters);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
