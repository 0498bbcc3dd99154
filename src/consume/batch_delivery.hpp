#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "backend/failure.hpp"
#include "base/retry_schedule.hpp"
#include "consume/batch_run.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One `consume_batch` call. It decides which messages share a transaction, and what follows a failure.
class BatchDelivery {
 public:
  BatchDelivery(ConsumerContext&, std::span<const Message>, const HandlersOfBatch&, OnFailure, Counting);

  BatchResults consume();

 private:
  using Part = std::vector<BatchItem*>;

  /// How one run of a part ended. Unless it was committed, it was rolled back.
  struct RunOutcome {
    BatchRun::End end = BatchRun::End::committed;
    Failure failure = {};
    std::optional<FailedItem> failed_item = {};
  };

  BatchResults consume_in_scope();
  void prepare_items();
  bool is_finished() const noexcept {
    return finished_ || (session_borrowed_ && context_.options.stop.stop_requested());
  }
  Part next_part();
  RunOutcome run(const Part&);
  bool answer_erased(const Part&, const ErasedKeyReading&);
  RunOutcome run_on(SessionHandle&, const Part&, const ErasedKeyReading&, std::uint64_t losses);
  void fail_torn_items(const std::optional<FailedItem>&);
  void after_commit(const Part&);
  bool savepoints_help(const Part&, const Failure&) const;
  void after_failure(const Part&, const Failure&);
  void prepare_rerun(const Part&);
  void after_transient_error(const Part&, const Failure&);
  void fail(BatchItem&, const Failure&);
  void resolve_claims();
  void record_failures();
  BatchResults finish();

  ConsumerContext& context_;
  std::span<const Message> messages_;
  const HandlersOfBatch handlers_;
  const OnFailure on_failure_;
  const Counting counting_;

  std::vector<BatchItem> items_;
  RetrySchedule schedule_;
  ClaimRecovery recovery_;
  std::vector<std::string> taken_over_;
  std::size_t part_size_;  ///< The most messages in the next transaction.
  int attempts_ = 0;
  std::size_t begin_ = 0;          ///< All messages before it have results.
  std::size_t end_;                ///< Messages from here on are not run.
  bool use_savepoints_ = false;    ///< The next transaction sets a savepoint for each message.
  bool progress_ = false;          ///< A message got its result although the transaction failed.
  bool session_borrowed_ = false;  ///< From now on, errors become results.
  bool finished_ = false;          ///< No more messages are run.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
