#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consume/consumer_context.hpp"
#include "message/content_hash.hpp"
#include "transaction/claim_recovery.hpp"
#include "transaction/guarded_transaction.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One message of a batch.
struct BatchItem {
  const Message* message;
  std::size_t index;  ///< In the batch.
  ContentHash hash;
  int runs = 0;  ///< Of its handler.
  std::optional<Result> result = {};
  bool parked = false;  ///< Now, by this delivery's failure.
};

/// Thrown when nothing has failed, but something was learnt and the part must run again: a claim of an
/// earlier run turned up, or a message behind which nothing may run.
struct RunAgain {};

/// The message whose handler lost the transaction, and what its delivery ends with.
struct Culprit {
  BatchItem* item;
  std::exception_ptr error;
};

/// One transaction with a part of a batch.
///
/// What it throws is to be rolled back by its owner. `results` are valid once it has committed.
class BatchRun {
 public:
  /// `part`: items without a result, in the order of the batch.
  BatchRun(const ConsumerContext& context, const Handler& handler, const ClaimRecovery& recovery,
           SessionHandle& session, GuardedTransaction& transaction, std::span<BatchItem* const> part);

  /// All claims at once, then the handlers; nothing can be undone alone.
  void run_whole(OnFailure on_failure);

  /// Claim after claim, each with its handler in a step that can be undone. What fails is left out; with
  /// `stop`, what is behind it as well.
  void run_by_steps(OnFailure on_failure);

  const std::optional<Culprit>& culprit() const noexcept { return culprit_; }

  /// The item behind which nothing may run, although it has not failed.
  const BatchItem* last() const noexcept { return last_; }

  /// Writes down the conflicts, once the transaction has committed: with it, nothing of that would be undone.
  /// One that cannot be written has failed, so that it is delivered again.
  void record_conflicts();

  /// Hands the results to the items, and what is known as committed to the memory of recent keys.
  void publish(RecentKeyCache&, std::uint64_t losses_before, std::uint64_t losses);

 private:
  /// What the messages of one business key share.
  struct Key {
    std::optional<backend::ClaimedRow> existing = {};
    std::size_t claim = 0;                   ///< Its number, where the claim is ours.
    std::optional<std::size_t> staged = {};  ///< The first message that was consumed under it.
  };
  struct Staged {
    BatchItem* item;
    Result result;
    bool ours = false;                           ///< Consumed by this run.
    std::optional<std::string> known_hash = {};  ///< Of an earlier delivery's content, for the memory of recent keys.
  };

  void sort_keys();
  std::vector<Candidate> candidates() const;
  void find_last();
  void stage(BatchItem&, Key&);
  void stage_existing(BatchItem&, Key&);
  void stage_copy(BatchItem&, const Staged& first);
  Staged run_handler(BatchItem&);
  void run_step(BatchItem&, Key&);
  void wait_until_durable();
  void commit();

  const ConsumerContext& context_;
  const Handler& handler_;
  const ClaimRecovery& recovery_;
  SessionHandle& session_;
  GuardedTransaction& transaction_;
  std::span<BatchItem* const> part_;

  std::vector<std::size_t> first_of_key_;  ///< For each key its first message in the part; sorted by key.
  std::vector<std::size_t> key_of_;        ///< For each message of the part its key.
  std::vector<Key> keys_;
  std::vector<Staged> staged_;
  std::optional<Culprit> culprit_;
  const BatchItem* last_ = nullptr;
  bool by_steps_ = false;
};

/// Whether, with `OnFailure::stop`, what is behind a message of this result must wait for its redelivery.
inline bool holds_up(const Result& result) noexcept {
  return result.outcome == Outcome::failed || result.outcome == Outcome::in_progress ||
         result.outcome == Outcome::postponed || (result.outcome == Outcome::parked && result.error);
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
