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

/// One `consume_batch` call: which messages go into which transaction, and what follows a failure.
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
  std::size_t part_size_;  ///< How many messages the next transaction may have.
  std::size_t begin_ = 0;  ///< All before it have results.
  std::size_t end_;        ///< With `stop`: of what is to be run.
  bool by_steps_ = false;  ///< The next transaction runs with a step for each message.
  bool progress_ = false;  ///< A message got its result although its transaction failed.
  bool sent_ = false;      ///< From here on nothing is thrown.
  bool over_ = false;      ///< Given up: what has no result is not run.
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
