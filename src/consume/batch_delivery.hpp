#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <vector>

#include "consume/batch_run.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// One `consume_batch` call. It decides which messages share a transaction, and what follows a failure.
class BatchDelivery {
 public:
  BatchDelivery(ConsumerContext&, std::span<const Message>, const Handler&, OnFailure);

  std::vector<Result> consume();

 private:
  using Part = std::vector<BatchItem*>;

  void prepare_items();
  bool is_over() const noexcept { return over_ || (sent_ && context_.options.stop.stop_requested()); }
  Part next_part();
  std::exception_ptr run(const Part&);
  void run_once(const Part&, std::optional<Culprit>& culprit);
  void settle_torn(const std::optional<Culprit>& culprit);
  void after_success();
  void after_failure(const Part&, const std::exception_ptr&);
  void after_lesson(const Part&);
  void after_transient(const Part&, const std::exception_ptr&);
  void fail(BatchItem&, std::exception_ptr);
  void note_failures();
  std::vector<Result> finish();

  ConsumerContext& context_;
  std::span<const Message> messages_;
  const Handler& handler_;
  const OnFailure on_failure_;

  std::vector<BatchItem> items_;
  RetrySchedule schedule_;
  ClaimRecovery recovery_;
  std::vector<std::string> taken_over_;
  std::size_t part_size_;  ///< The most messages in the next transaction.
  std::size_t begin_ = 0;  ///< All messages before it have results.
  std::size_t end_;        ///< Messages from here on are not run.
  bool by_steps_ = false;  ///< The next transaction sets a savepoint for each message.
  bool progress_ = false;  ///< A message got its result although the transaction failed.
  bool sent_ = false;      ///< A session was borrowed: from now on, errors become results.
  bool over_ = false;      ///< No more messages are run.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
