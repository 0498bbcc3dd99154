#include "soci_adapter/pool_session_factory.hpp"

#include <txinbox/error.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

soci::details::session_backend* PoolSessionFactory::make_session(const soci::connection_parameters& parameters) const {
  if (!may_connect_) {
    throw Error(ErrorCode::transaction_lost,
                "a handler must not reconnect its session: the transaction with the claim of its message ends with the "
                "connection. Do not catch the error of the lost connection in the handler");
  }
  return database_.make_session(parameters);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
