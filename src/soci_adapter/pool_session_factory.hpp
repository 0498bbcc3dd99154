#pragma once

#include <soci/soci-backend.h>

#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Opens the connections of one session of a pool.
///
/// While a consumer uses the session, the factory opens none: `session.reconnect()` in a handler throws `Error`
/// transaction_lost. So no SQL of the handler can run without the claim.
class PoolSessionFactory final : public soci::backend_factory {
 public:
  explicit PoolSessionFactory(const soci::backend_factory& database) noexcept : database_(database) {}

  void allow_connecting(bool allowed) noexcept { may_connect_ = allowed; }

  soci::details::session_backend* make_session(const soci::connection_parameters&) const override;

 private:
  const soci::backend_factory& database_;
  bool may_connect_ = true;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
