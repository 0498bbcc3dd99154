#include "pool/pool_state.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/database_error.hpp"
#include "backend/table_check.hpp"
#include "schema/verification.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

void check(const PoolOptions& options) {
  if (options.connections < 1) {
    throw Error(ErrorCode::invalid_argument, "PoolOptions::connections must be at least 1");
  }
  using std::chrono::milliseconds;
  const std::array timeouts = {
      std::pair{"acquire_timeout", options.acquire_timeout}, std::pair{"connect_timeout", options.connect_timeout},
      std::pair{"lock_timeout", options.lock_timeout}, std::pair{"statement_timeout", options.statement_timeout},
      std::pair{"idle_transaction_timeout", options.idle_transaction_timeout}};
  for (const auto& [name, value] : timeouts) {
    if (value < milliseconds(1) || value > std::chrono::days(24)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("PoolOptions::{} is {} ms; it must be from 1 ms to 24 days", name, value.count()));
    }
  }
}

Slot::~Slot() {
  if (connection) locals.clear(*connection);
  backend.reset();
  connection.reset();
}

PoolState::PoolState(std::unique_ptr<Connector> connector, PoolOptions options)
    : options_(std::move(options)), connector_(std::move(connector)) {
  idle_.reserve(options_.connections);
  idle_.push_back(connect());
  open_ = 1;
}

PoolState::~PoolState() = default;

std::shared_ptr<PoolState> PoolState::open(std::unique_ptr<Connector> connector, PoolOptions options) {
  return {new PoolState(std::move(connector), std::move(options)), [](const PoolState* pool) {
            if (pool->owner_.is_this_one()) delete pool;  // NOLINT(cppcoreguidelines-owning-memory): of a shared_ptr
          }};
}

/// Call it before taking the lock. If another thread of the parent held the lock at fork(), nobody releases it here.
void PoolState::refuse_forked() const {
  if (owner_.is_this_one()) return;
  throw Error(
      ErrorCode::forked,
      "the pool was opened before fork(), and its connections are the parent's; open another pool in the child");
}

std::unique_ptr<Slot> PoolState::connect() const {
  auto slot = std::make_unique<Slot>();
  try {
    slot->connection = connector_->connect();
    slot->locals = ConnectionLocals(*slot->connection);
    slot->backend = slot->connection->database().attach(slot->connection, backend::Ownership::pool);
    slot->backend->configure(options_);
  } catch (...) {
    const auto error = backend::current_database_error();
    const auto why = error ? connector_->refusal(error->code) : std::nullopt;
    if (why) throw Error(ErrorCode::access_refused, *why);
    throw;
  }
  if (options_.on_connect) {
    options_.on_connect(*slot->connection->soci());
    if (slot->backend->in_transaction()) {
      throw Error(ErrorCode::transaction_open, "PoolOptions::on_connect left a transaction open; it must end it");
    }
  }
  backend::throw_on_errors(slot->backend->unsafe_settings());
  slot->backend->remember_settings();
  return slot;
}

void PoolState::forget_one() noexcept {
  {
    const std::lock_guard lock(mutex_);
    --open_;
    ++lost_;
  }
  freed_.notify_one();
}

std::uint64_t PoolState::lost_connections() {
  refuse_forked();
  std::unique_ptr<Slot> dead;  // closed after the lock is released, because closing can be slow
  const std::lock_guard lock(mutex_);
  if (!idle_.empty() && !idle_.back()->backend->intact()) {
    dead = std::move(idle_.back());
    idle_.pop_back();
    --open_;
    ++lost_;
  }
  return lost_;
}

std::unique_ptr<Slot> PoolState::acquire(const std::stop_token& stop) {
  refuse_forked();
  std::vector<std::unique_ptr<Slot>> dead;  // closed after the lock is released, because closing can be slow
  std::unique_lock lock(mutex_);
  const auto available = [this] { return !idle_.empty() || open_ < options_.connections; };
  if (!freed_.wait_for(lock, stop, options_.acquire_timeout, available)) {
    if (stop.stop_requested()) throw Error(ErrorCode::stopped, "stopped while waiting for a connection of the pool");
    throw Error(ErrorCode::acquire_timeout,
                fmt::format("none of the pool's {} connections became free within {} ms; raise "
                            "PoolOptions::connections or acquire_timeout",
                            options_.connections, options_.acquire_timeout.count()));
  }
  while (!idle_.empty()) {
    auto slot = std::move(idle_.back());
    idle_.pop_back();
    if (slot->backend->intact()) return slot;
    --open_;
    ++lost_;
    dead.push_back(std::move(slot));  // the server closed it while it was idle
  }
  ++open_;
  lock.unlock();
  try {
    return connect();
  } catch (...) {
    forget_one();
    throw;
  }
}

std::unique_ptr<Slot> PoolState::take_idle() {
  if (!owner_.is_this_one()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (idle_.empty() || !idle_.back()->verified || !idle_.back()->backend->intact()) return nullptr;
  auto slot = std::move(idle_.back());
  idle_.pop_back();
  return slot;
}

void PoolState::give_back(std::unique_ptr<Slot> slot) noexcept {
  if (!owner_.is_this_one()) {
    (void)slot.release();  // NOLINT(bugprone-unused-return-value): the parent's
    return;
  }
  const bool keep = slot->usable && ((slot->clean && slot->backend->intact()) || slot->backend->reset());
  if (!keep) {
    slot.reset();  // closed at once, because it may hold locks
    forget_one();
    return;
  }
  slot->clean = true;
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(slot));  // it cannot throw, because the capacity is reserved
  }
  freed_.notify_one();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
