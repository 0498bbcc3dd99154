#include <txinbox/transaction.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/error.hpp>

#include "backend/connection_access.hpp"
#include "backend/database.hpp"
#include "backend/failure.hpp"
#include "backend/table_check.hpp"
#include "message/content_hash.hpp"
#include "message/key.hpp"
#include "schema/verification.hpp"
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
    guarded_.begin();
  }

  ~Impl() { roll_back(); }

  Claim claim(std::string_view consumer, const Message& message) {
    try {
      detail::check_consumer(consumer);
      detail::check_message(message);
      const detail::ContentHash hash(message.content);
      const auto existing = guarded_.claim(consumer, message, hash.bytes());
      if (existing) return detail::claim_for(*existing, hash.bytes());
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
    try {
      guarded_.commit();
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
  }

 private:
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

  std::unique_ptr<backend::Session> session_;
  detail::GuardedTransaction guarded_;
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
