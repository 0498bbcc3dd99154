#include "pool/session_provider.hpp"

#include <utility>

#include <txinbox/error.hpp>

#include "backend/error_classification.hpp"
#include "backend/registry.hpp"
#include "pool/pool_state.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

SessionHandle::SessionHandle(soci::session& sql, backend::Session& backend)
    : sql_(&sql), backend_(&backend), locals_(sql) {}

SessionHandle::SessionHandle(std::shared_ptr<PoolState> pool, std::unique_ptr<Slot> slot) noexcept
    : sql_(slot->session.get()), backend_(slot->backend.get()), pool_(std::move(pool)), slot_(std::move(slot)) {
  slot_->clean = false;
  slot_->factory.allow_connecting(false);
}

SessionHandle::SessionHandle(SessionHandle&& other) noexcept
    : sql_(std::exchange(other.sql_, nullptr)),
      backend_(other.backend_),
      pool_(std::move(other.pool_)),
      slot_(std::move(other.slot_)),
      locals_(std::move(other.locals_)) {}

SessionHandle::~SessionHandle() {
  if (slot_) {
    pool_->give_back(std::move(slot_));
  } else if (sql_ != nullptr) {
    locals_.clear(*sql_);
  }
}

ConnectionLocals& SessionHandle::locals() noexcept { return slot_ ? slot_->locals : locals_; }

void SessionHandle::drop_locals() noexcept { locals().clear(*sql_); }

void SessionHandle::mark_clean() noexcept {
  if (slot_) slot_->clean = true;
}

void SessionHandle::discard() noexcept {
  if (slot_) slot_->usable = false;
}

SessionProvider::SessionProvider(std::shared_ptr<PoolState> pool) : pool_(std::move(pool)) {}

SessionProvider::SessionProvider(soci::session& sql)
    : sql_(&sql), session_(backend::database_of(sql).attach(sql, backend::Ownership::caller)) {}

SessionProvider::SessionProvider(SessionProvider&&) noexcept = default;
SessionProvider::~SessionProvider() = default;

const void* SessionProvider::identity() const noexcept {
  return pool_ ? static_cast<const void*>(pool_.get()) : static_cast<const void*>(sql_);
}

std::uint64_t SessionProvider::lost_connections() { return pool_ ? pool_->lost_connections() : 0; }

SessionHandle SessionProvider::borrow(const std::stop_token& stop) {
  if (pool_) {
    SessionHandle borrowed(pool_, pool_->acquire(stop));
    borrowed.verify_once();
    return borrowed;
  }
  throw_on_errors(session_->unsafe_settings());
  refuse_open_transaction(*session_);
  if (!verified_) {
    const OutsideTransaction outside(*sql_);  // with autocommit off, MySQL opens a transaction for the check
    session_->use_schema(verify_for_consuming(*sql_));
  }
  verified_ = true;
  return SessionHandle(*sql_, *session_);
}

std::optional<SessionHandle> SessionProvider::borrow_idle() {
  if (pool_) {
    auto slot = pool_->take_idle();
    if (!slot) return std::nullopt;
    return SessionHandle(pool_, std::move(slot));
  }
  if (!verified_) return std::nullopt;
  return SessionHandle(*sql_, *session_);
}

void SessionHandle::verify_once() {
  if (slot_->verified) return;
  backend_->use_schema(verify_for_consuming(*sql_));
  slot_->verified = true;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
