#include "pool/session_provider.hpp"

#include <utility>

#include <txinbox/error.hpp>

#include "backend/database.hpp"
#include "backend/table_check.hpp"
#include "pool/pool_state.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

namespace {

/// Returns what identifies a connection. The connection of a SOCI session can be replaced.
const void* identity_of(const backend::NativeConnection& connection) noexcept {
  if (const void* session = connection.soci()) return session;
  return connection.identity();
}

}  // namespace

SessionHandle::SessionHandle(backend::Session& session) : backend_(&session), locals_(connection()) {}

SessionHandle::SessionHandle(std::shared_ptr<PoolState> pool, std::unique_ptr<Slot> slot) noexcept
    : backend_(slot->backend.get()), pool_(std::move(pool)), slot_(std::move(slot)) {
  slot_->clean = false;
  slot_->connection->allow_reconnecting(false);
}

SessionHandle::SessionHandle(SessionHandle&& other) noexcept
    : backend_(std::exchange(other.backend_, nullptr)),
      pool_(std::move(other.pool_)),
      slot_(std::move(other.slot_)),
      locals_(std::move(other.locals_)) {}

SessionHandle::~SessionHandle() {
  if (slot_) {
    pool_->give_back(std::move(slot_));
  } else if (backend_ != nullptr) {
    locals_.clear(connection());
  }
}

ConnectionLocals& SessionHandle::locals() noexcept { return slot_ ? slot_->locals : locals_; }

void SessionHandle::drop_locals() noexcept { locals().clear(connection()); }

void SessionHandle::mark_clean() noexcept {
  if (slot_) slot_->clean = true;
}

void SessionHandle::discard() noexcept {
  if (slot_) slot_->usable = false;
}

SessionProvider::SessionProvider(std::shared_ptr<PoolState> pool) : pool_(std::move(pool)) {}

SessionProvider::SessionProvider(backend::ConnectionPtr connection)
    : session_(connection->database().attach(connection, backend::Ownership::caller)) {}

SessionProvider::SessionProvider(SessionProvider&&) noexcept = default;
SessionProvider::~SessionProvider() = default;

const void* SessionProvider::identity() const noexcept {
  return pool_ ? static_cast<const void*>(pool_.get()) : identity_of(*session_->connection_ptr());
}

std::uint64_t SessionProvider::lost_connections() { return pool_ ? pool_->lost_connections() : 0; }

SessionHandle SessionProvider::borrow(const std::stop_token& stop, SettingsCheck check) {
  if (pool_) {
    SessionHandle borrowed(pool_, pool_->acquire(stop));
    borrowed.verify_once(claims_);
    return borrowed;
  }
  const backend::ConnectionPtr& connection = session_->connection_ptr();
  connection->database().refuse_unusable(*connection);
  connection->database().keep_error_codes(*connection);
  if (!verified_ || check == SettingsCheck::now || !session_->will_check_settings()) {
    backend::throw_on_errors(session_->unsafe_settings());
  }
  backend::refuse_open_transaction(*session_);
  if (!verified_) {
    const OutsideTransaction outside(connection);  // with autocommit off, MySQL opens a transaction for the check
    session_->use_schema(verify_for_consuming(connection));
    if (claims_) verify_claims(connection);
  }
  verified_ = true;
  return SessionHandle(*session_);
}

std::optional<SessionHandle> SessionProvider::borrow_idle() {
  if (pool_) {
    auto slot = pool_->take_idle();
    if (!slot) return std::nullopt;
    return SessionHandle(pool_, std::move(slot));
  }
  if (!verified_) return std::nullopt;
  return SessionHandle(*session_);
}

void SessionHandle::verify_once(bool claims) {
  if (!slot_->verified) {
    backend_->use_schema(verify_for_consuming(backend_->connection_ptr()));
    slot_->verified = true;
  }
  if (claims && !slot_->may_claim) {
    verify_claims(backend_->connection_ptr());
    slot_->may_claim = true;
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
