// A batch with a savepoint for each message: one that fails leaves the others as they are.

#include <exception>
#include <optional>
#include <utility>

#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "consume/batch_run.hpp"
#include "consume/consume_sequentially.hpp"
#include "consume/consumer_policy.hpp"
#include "types/refused.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

BatchRun::End BatchRun::run_with_savepoints(OnFailure on_failure) {
  transaction_.begin();
  for (std::size_t i = 0; i < part_.size(); ++i) {
    BatchItem& item = *part_[i];
    Key& key = keys_[key_of_[i]];
    if (key.failed || takes_over(i)) break;
    if (i > 0 && erased_.is_old()) break;  // the next run reads the erased keys first
    const bool decided = key.existing || key.staged;
    if (!(decided ? stage(item, key) : run_in_savepoint(item, key))) return End::run_again;
    if (ends_batch(staged_.back().result, on_failure)) break;
  }
  commit();
  return End::committed;
}

/// Runs one message in a savepoint. If the message fails, only its result remains. Returns false if the part must run
/// again.
bool BatchRun::run_in_savepoint(BatchItem& item, Key& key) {
  if (item.refusal) return keep_refusal(item, key);
  const std::size_t claims_before = transaction_.claims();
  session_.backend().savepoint();
  bool confirming = false;
  try {
    if (const auto ended = claim_in_savepoint(item, key)) return *ended;
    Staged done = run_handler_of(item);
    confirming = true;
    transaction_.complete_savepoint(done.result.stored);
    key.staged = staged_.size();
    staged_.push_back(std::move(done));
  } catch (...) {
    // The release of the savepoint throws transaction_lost if the handler had ended the transaction. So this error has
    // only one meaning: the server is read-only now.
    const Failure failure = Failure::current();
    if (confirming && failure.error_class() == backend::ErrorClass::read_only) throw;
    return undo_savepoint(item, key, claims_before, failure);
  }
  return true;
}

/// Claims the key. If the message cannot have it, its result is staged, and the function returns what its caller
/// returns.
std::optional<bool> BatchRun::claim_in_savepoint(BatchItem& item, Key& key) {
  if (auto existing = transaction_.claim(context_.consumer, *item.message, item.hash.bytes())) {
    key.existing = std::move(existing);
    transaction_.release_savepoint();
    return stage(item, key);
  }
  if (has_waited_too_long()) return false;
  key.claim = transaction_.claims() - 1;
  return std::nullopt;
}

/// Rolls back to the savepoint of a message that failed, and stages its result. Throws if the whole transaction has
/// failed. Returns false if the part must run again.
bool BatchRun::undo_savepoint(BatchItem& item, Key& key, std::size_t claims_before, const Failure& failure) {
  backend::Session& backend = session_.backend();
  const bool refuses_commit = is_refusal(backend, failure);
  auto refusal = refused_by(failure.error());
  if (failure.is_transient() && !refuses_commit) failure.rethrow();
  if (!backend.rollback_to_savepoint()) {
    if (refusal) {
      item.refusal = std::move(refusal);
      has_new_refusal_ = true;
      return false;
    }
    failed_item_ = {&item, refuses_commit ? Failure(std::make_exception_ptr(transaction_lost(false))) : failure};
    failed_item_->failure.rethrow();
  }
  // The transaction is intact, so the error has another cause: for example, the server itself is read-only.
  if (failure.is_transient()) failure.rethrow();
  session_.drop_locals();
  if (transaction_.claims() > claims_before) transaction_.drop_last_claim();
  key = {};
  if (refusal) {
    item.refusal = std::move(refusal);
    return keep_refusal(item, key);
  }
  staged_.push_back({&item, failed_with(failure.error())});
  key.failed = staged_.back().result.outcome == Outcome::failed;
  return true;
}

/// Claims the key of a refused message, only to store the result of the refusal.
bool BatchRun::keep_refusal(BatchItem& item, Key& key) {
  session_.backend().savepoint();
  if (const auto ended = claim_in_savepoint(item, key)) return *ended;
  transaction_.complete_savepoint(item.refusal);
  key.staged = staged_.size();
  staged_.push_back({&item, {.outcome = Outcome::consumed, .stored = item.refusal, .refused = true}, true});
  return true;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
