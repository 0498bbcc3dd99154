#include "pool/session_source.hpp"

#include <utility>

#include <txinbox/error.hpp>

#include "backend/error_classification.hpp"
#include "backend/registry.hpp"
#include "pool/pool_state.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

BorrowedSession::BorrowedSession(soci::session& sql, backend::Session& backend)
    : sql_(&sql), backend_(&backend), locals_(sql) {}

BorrowedSession::BorrowedSession(std::shared_ptr<PoolState> pool, std::unique_ptr<Slot> slot) noexcept
    : sql_(slot->session.get()), backend_(slot->backend.get()), pool_(std::move(pool)), slot_(std::move(slot)) {
  slot_->clean = false;
  slot_->factory.allow_connecting(false);
}

BorrowedSession::BorrowedSession(BorrowedSession&& other) noexcept
    : sql_(std::exchange(other.sql_, nullptr)),
      backend_(other.backend_),
      pool_(std::move(other.pool_)),
      slot_(std::move(other.slot_)),
      locals_(std::move(other.locals_)) {}

BorrowedSession::~BorrowedSession() {
  if (slot_) {
    pool_->give_back(std::move(slot_));
  } else if (sql_ != nullptr) {
    locals_.clear(*sql_);
  }
}

ConnectionLocals& BorrowedSession::locals() noexcept { return slot_ ? slot_->locals : locals_; }

void BorrowedSession::drop_locals() noexcept { locals().clear(*sql_); }

void BorrowedSession::is_clean() noexcept {
  if (slot_) slot_->clean = true;
}

void BorrowedSession::discard() noexcept {
  if (slot_) slot_->usable = false;
}

SessionSource::SessionSource(std::shared_ptr<PoolState> pool) : pool_(std::move(pool)) {}

SessionSource::SessionSource(soci::session& sql)
    : sql_(&sql), session_(backend::database_of(sql).attach(sql, backend::Ownership::caller)) {}

SessionSource::SessionSource(SessionSource&&) noexcept = default;
SessionSource::~SessionSource() = default;

const void* SessionSource::identity() const noexcept {
  return pool_ ? static_cast<const void*>(pool_.get()) : static_cast<const void*>(sql_);
}

std::uint64_t SessionSource::lost_connections() { return pool_ ? pool_->lost_connections() : 0; }

BorrowedSession SessionSource::borrow(const std::stop_token& stop) {
  if (pool_) {
    BorrowedSession borrowed(pool_, pool_->acquire(stop));
    borrowed.verify_once();
    return borrowed;
  }
  refuse(session_->unsafe_settings());
  refuse_open_transaction(*session_);
  if (!verified_) {
    const OutsideTransaction outside(*sql_);  // with autocommit off, MySQL opens one for the check
    session_->use_schema(verify_for_consuming(*sql_));
  }
  verified_ = true;
  return BorrowedSession(*sql_, *session_);
}

std::optional<BorrowedSession> SessionSource::borrow_idle() {
  if (pool_) {
    auto slot = pool_->take_idle();
    if (!slot) return std::nullopt;
    return BorrowedSession(pool_, std::move(slot));
  }
  if (!verified_) return std::nullopt;
  return BorrowedSession(*sql_, *session_);
}

void BorrowedSession::verify_once() {
  if (slot_->verified) return;
  backend_->use_schema(verify_for_consuming(*sql_));
  slot_->verified = true;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
