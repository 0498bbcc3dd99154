#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/failure.hpp"
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
  std::size_t index;  ///< The position of the message in the batch.
  ContentHash hash;
  int runs = 0;  ///< How often its handler has run.
  std::optional<Result> result = {};
  bool counted = false;                     ///< Its failure was counted, if it had to be.
  bool parked = false;                      ///< This delivery's failure parked it.
  std::optional<std::string> refusal = {};  ///< The result with which the handler has refused the message. The handler
                                            ///< does not run again.
};

/// A message whose handler lost the transaction, and the failure of its delivery.
struct FailedItem {
  BatchItem* item;
  Failure failure;
};

/// The user's code of a batch.
struct HandlersOfBatch {
  const Handler& one;                     ///< For one message.
  const BatchHandler* at_once = nullptr;  ///< For all new messages of a part, if the user gave such a handler.
  bool one_isolates = false;              ///< `one` is the user's own handler. It shows which message makes `at_once`
                                          ///< fail.
};

/// One transaction with a part of a batch.
///
/// If a function throws, or if it returns run_again, the owner must roll back. The results are valid only after the
/// commit.
class BatchRun {
 public:
  enum class End {
    committed,
    run_again,  ///< Nothing failed, but the part must run again. The run found a claim of an earlier run that must be
                ///< resolved first, or it found `last_item`, or `most_items` is less than all.
  };

  /// `part`: items without a result, in the order of the batch.
  /// `batch`: the messages of the call.
  BatchRun(const ConsumerContext& context, const HandlersOfBatch& handlers, std::span<const Message> batch,
           ClaimRecovery& recovery, SessionHandle& session, GuardedTransaction& transaction,
           std::span<BatchItem* const> part, const ErasedKeyReading& erased);

  /// Inserts all claims at once, then runs the handlers, or the one handler for all messages. Then it commits. It
  /// cannot roll back a single message.
  End run_without_savepoints(OnFailure on_failure);

  /// Inserts each claim and runs its handler in a savepoint, then commits. A message that fails is rolled back alone.
  ///
  /// Later messages are not run after an error of the environment, or if `OnFailure` forbids it. The run also
  /// ends before a copy of a message that failed, because the failure may park the key. The owner counts failures only
  /// after the transaction.
  End run_with_savepoints(OnFailure on_failure);

  /// The item whose handler lost the transaction. Without savepoints this is a guess: the handler of an earlier item
  /// may have lost it.
  const std::optional<FailedItem>& failed_item() const noexcept { return failed_item_; }

  /// The item behind which no other may run, because another worker has leased its key, or because it is parked: see
  /// `OnFailure`. Null if there is none, and after `run_with_savepoints`.
  const BatchItem* last_item() const noexcept { return last_item_; }

  /// Whether a handler has refused its message in a transaction that was lost. The refusal is kept in the next run.
  bool has_new_refusal() const noexcept { return has_new_refusal_; }

  /// Whether the next run needs another reading of the erased keys.
  bool needs_reading() const noexcept { return needs_reading_; }

  /// How many items of the part may be in one transaction. It is less than all of them if a later item can take over
  /// the row that an earlier copy has found.
  std::size_t most_items() const noexcept { return most_items_; }

  /// Records the conflicts. Call it after the commit: each record is a transaction of its own.
  ///
  /// A conflict that cannot be recorded becomes a failure, so that its message is delivered again.
  void record_conflicts();

  /// Moves the results to the items, and adds the committed keys to the cache of recent keys.
  void publish(RecentKeyCache&, std::uint64_t losses_before, std::uint64_t losses);

 private:
  /// The state that the messages of one business key share.
  struct Key {
    std::optional<backend::ClaimedRow> existing = {};
    std::size_t claim = 0;                   ///< The number of the claim, if it is ours.
    std::optional<std::size_t> staged = {};  ///< The first message that was consumed with this key.
    bool failed = false;                     ///< A message with this key has failed in this run.
  };
  struct Staged {
    BatchItem* item;
    Result result;
    bool ours = false;                           ///< This run consumed the message.
    std::optional<std::string> known_hash = {};  ///< The hash in the existing row, for the cache of recent keys.
  };

  void sort_keys();
  std::vector<backend::ClaimRequest> claim_requests() const;
  const BatchItem* find_last_item(OnFailure) const;
  bool takes_over(std::size_t at) const;
  bool has_waited_too_long();
  bool stage(BatchItem&, Key&);
  bool stage_existing(BatchItem&, Key&);
  void stage_copy(BatchItem&, const Staged& first);
  bool runs_at_once() const;
  bool is_guard_gone();
  bool run_each();
  bool run_at_once();
  Staged run_handler_of(BatchItem&);
  bool run_in_savepoint(BatchItem&, Key&);
  std::optional<bool> claim_in_savepoint(BatchItem& item, Key& key);
  bool undo_savepoint(BatchItem&, Key&, std::size_t claims_before, const Failure&);
  bool keep_refusal(BatchItem&, Key&);
  void wait_until_durable();
  void set_results();
  void commit();

  const ConsumerContext& context_;
  const HandlersOfBatch handlers_;
  const std::span<const Message> batch_;
  ClaimRecovery& recovery_;
  SessionHandle& session_;
  GuardedTransaction& transaction_;
  std::span<BatchItem* const> part_;
  const ErasedKeyReading& erased_;  ///< The part has no message that it finds.

  std::vector<std::size_t> first_of_key_;  ///< For each key, its first message in the part; sorted by key.
  std::vector<std::size_t> key_of_;        ///< For each message of the part, its key.
  std::vector<Key> keys_;
  std::vector<Staged> staged_;
  std::optional<FailedItem> failed_item_;
  const BatchItem* last_item_ = nullptr;
  std::size_t most_items_ = part_.size();
  bool has_new_refusal_ = false;
  bool needs_reading_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
