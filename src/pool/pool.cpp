#include <utility>

#include <txinbox/connection_ref.hpp>
#include <txinbox/pool.hpp>

#include "pool/pool_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

Connection::Connection(std::shared_ptr<detail::PoolState> pool, std::unique_ptr<detail::Slot> slot) noexcept
    : pool_(std::move(pool)), slot_(std::move(slot)) {}

Connection::Connection(Connection&&) noexcept = default;

Connection& Connection::operator=(Connection&& other) noexcept {
  std::swap(pool_, other.pool_);  // `other` gives back the old connection when it is destroyed
  std::swap(slot_, other.slot_);
  return *this;
}

Connection::~Connection() {
  if (slot_) pool_->give_back(std::move(slot_));
}

namespace detail {
// libtxinbox has it. The reference is weak, so that a program without SOCI, which has no pool, does not need it.
[[gnu::weak]] backend::ConnectionPtr soci_connection(soci::session& session);
}  // namespace detail

ConnectionRef::ConnectionRef(const Connection& connection)
    : connection_(detail::soci_connection(connection.session())) {}

soci::session& Connection::session() const noexcept { return *slot_->connection->soci(); }

Pool::Pool(std::shared_ptr<detail::PoolState> state) noexcept : state_(std::move(state)) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;

Connection Pool::acquire(std::stop_token stop) {
  auto slot = state_->acquire(stop);
  slot->clean = false;  // the user may do anything on it
  slot->connection->allow_reconnecting(true);
  backend::Session& session = *slot->backend;
  Connection lent = detail::PoolAccess::lend(state_, std::move(slot));
  session.lend();
  return lent;
}

const PoolOptions& Pool::options() const noexcept { return state_->options(); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
