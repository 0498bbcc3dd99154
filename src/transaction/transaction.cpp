#include <txinbox/transaction.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/failure.hpp"
#include "backend/table_check.hpp"
#include "message/content_hash.hpp"
#include "message/erased_key.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"
#include "tables/consumed_message_table.hpp"
#include "tables/erased_message_table.hpp"
#include "tables/outbox_scope.hpp"
#include "transaction/claim.hpp"
#include "transaction/claim_recovery.hpp"
#include "transaction/guarded_transaction.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN

class Transaction::Impl {
 public:
  explicit Impl(const backend::ConnectionPtr& connection)
      : session_(connection->database().attach(connection, backend::Ownership::caller)), guarded_(*session_) {
    connection->database().refuse_unusable(*connection);
    backend::throw_on_errors(session_->unsafe_settings());
    backend::refuse_open_transaction(*session_);
    {
      const detail::OutsideTransaction outside(
          connection);  // with autocommit off, MySQL opens a transaction for the check
      session_->use_schema(detail::verify_for_consuming(connection));
      detail::verify_claims(connection);
    }
    begun_ = Clock::now();
    guarded_.begin();
  }

  ~Impl() { roll_back(); }

  Claim claim(std::string_view consumer, const Message& message) {
    try {
      detail::check_consumer(consumer);
      detail::check_message(message);
      const detail::ContentHash hash(message.content);
      if (const auto existing = guarded_.claim(consumer, message, hash.bytes())) {
        if (existing->state == detail::RowState::consumed) note_consumed(consumer, message.business_key);
        return detail::claim_for(*existing, hash.bytes());
      }
      if (const auto erased = find_erased(consumer, message)) {
        const detail::ConsumedMessageTable table(*session_, backend::TransactionUse::open);
        if (!table.delete_claim(consumer, message.business_key, guarded_.token()))
          throw detail::transaction_lost(false);
        guarded_.drop_last_claim();
        return *erased;
      }
      latest_claim_.emplace(*session_, consumer, message);
      return Claim::claimed;
    } catch (...) {
      claim_threw_ = true;
      throw;
    }
  }

  void commit() {
    latest_claim_.reset();
    if (claim_threw_) {
      roll_back();
      throw Error(
          ErrorCode::transaction_lost,
          "a claim in this transaction threw, so its message is not claimed, and everything was rolled back; do "
          "not catch such errors, and have the message delivered again");
    }
    // A commit that changes something makes the rows durable that this transaction has read.
    for (const Key& each : not_durable_) guarded_.add_write(session_->keep_sql(each.consumer, each.business_key));
    try {
      guarded_.commit();
      not_durable_.clear();
    } catch (...) {
      const detail::Failure failure = guarded_.explain(detail::Failure::current());
      const bool torn = resolve_claims();
      if (torn && failure.is(ErrorCode::transaction_lost)) throw detail::transaction_lost(torn);
      failure.rethrow();
    }
  }

  void roll_back() noexcept {
    latest_claim_.reset();
    guarded_.roll_back();
    resolve_claims();
    wait_until_durable();
  }

 private:
  struct Key {
    std::string consumer;
    std::string business_key;
  };

  /// Keeps the names of a claim for as long as the caller can add messages to the outbox for it.
  struct LatestClaim {
    LatestClaim(backend::Session& session, std::string_view consumer_name, const Message& message)
        : consumer(consumer_name),
          business_key(message.business_key),
          outbox(session, consumer, business_key, message.valid_for.count() > 0) {}

    const std::string consumer;
    const std::string business_key;
    const detail::OutboxScope outbox;
  };

  /// Resolves claims that may be in the table without our commit. Returns whether one was marked torn. A broken session
  /// cannot do this, and the library never reconnects a caller's session.
  bool resolve_claims() noexcept {
    if (!guarded_.session_usable()) return false;
    try {
      detail::ClaimRecovery recovery;
      recovery.collect(guarded_);
      recovery.resolve(*session_);
      return !recovery.take_torn().empty();
    } catch (...) {  // the caller reports the error that happened before
      return false;
    }
  }

  /// Whether the message was erased. `erase` removes the row of a key half a minute after it has committed the erased
  /// key, so that row was not there when the claim was inserted. See `ErasedKeyReading`.
  std::optional<Claim> find_erased(std::string_view consumer, const Message& message) {
    // The snapshot that this SELECT reads can be as old as the transaction.
    const bool past_snapshot = Clock::now() - begun_ >= detail::erased_keys_valid_for;
    if (past_snapshot && !session_->reads_latest_commits()) {
      throw Error(ErrorCode::transaction_lost,
                  "the claim was made so late in a transaction at REPEATABLE READ or SERIALIZABLE that it cannot see "
                  "whether `erase` has removed the key; make all claims in the first 20 seconds of the transaction");
    }
    return detail::ErasedMessageTable(*session_, consumer).find(message, past_snapshot);
  }

  void note_consumed(std::string_view consumer, const std::string& business_key) {
    if (session_->shows_commits_early()) not_durable_.push_back({std::string(consumer), business_key});
  }

  /// One row is enough: what makes it durable makes all earlier commits durable.
  void wait_until_durable() noexcept {
    try {
      for (const Key& each : std::exchange(not_durable_, {})) {
        if (session_->wait_until_durable(each.consumer, each.business_key)) return;
      }
    } catch (...) {  // NOLINT(bugprone-empty-catch): see the header of `rollback`
    }
  }

  using Clock = std::chrono::steady_clock;

  std::unique_ptr<backend::Session> session_;
  detail::GuardedTransaction guarded_;
  Clock::time_point begun_;
  std::vector<Key> not_durable_;  ///< Consumed rows whose commits may not be on the disk yet.
  bool claim_threw_ = false;
  std::optional<LatestClaim> latest_claim_;
};

Transaction::Transaction(ConnectionRef connection)
    : impl_(std::make_unique<Impl>(detail::ConnectionAccess::of(connection))) {}
Transaction::~Transaction() = default;

Claim Transaction::claim(std::string_view consumer, const Message& message) { return impl_->claim(consumer, message); }

void Transaction::commit() { impl_->commit(); }

void Transaction::rollback() noexcept { impl_->roll_back(); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
