#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string_view>
#include <vector>

#include <txinbox/handler.hpp>
#include <txinbox/lease_consumer.hpp>
#include <txinbox/run.hpp>
#include <txinbox/tx_consumer.hpp>
#include <txinbox/version.hpp>

#include "run/scheduler.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// Runs the messages of a job with a consumer. The loop uses consumers only through this interface.
///
/// @threads the workers call `run` at the same time.
class JobRunner {
 public:
  JobRunner() = default;
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;
  virtual ~JobRunner() = default;

  virtual std::string_view consumer() const = 0;

  /// The maximum number of messages in a job.
  virtual std::size_t job_size() const = 0;

  /// The options of the consumer.
  virtual const ConsumerOptions& options() const = 0;

  /// Whether an operator has paused the consumer. It asks the database at most once a second.
  ///
  /// Errors: those of the database that can pass.
  virtual bool is_paused() const = 0;

  /// Runs the handler. First it asks whether the consumer is paused, and counts the failures of earlier attempts that
  /// are not counted yet. The results contain the exceptions that handlers throw, or `HandlerError`s.
  JobResult run(const Job& job) const;

  /// Whether the consumer has something left to do for earlier jobs. A worker without a job then calls `tidy_up`, once
  /// a second.
  virtual bool has_left_over() const noexcept { return false; }
  virtual void tidy_up() const noexcept {}

 private:
  /// Whether the consumer counts this error of a handler as a failure of its message.
  virtual bool counts(const std::exception_ptr& error) const = 0;

  /// Whether no operator has decided yet about this message, which was parked.
  virtual bool is_parked(const Message&) const = 0;

  /// Counts this failure of an earlier attempt. Returns the result if the handler must not run after this.
  virtual std::optional<Result> count_failure(const Message&, const std::exception_ptr& failure) const = 0;
  virtual JobResult run_handler(const Job& job) const = 0;
};

/// Runs a batch in one transaction.
class TxJobRunner : public JobRunner {
 public:
  TxJobRunner(TxConsumer& consumer, const BatchHandlers& handlers, const RunOptions& options)
      : consumer_(consumer), handlers_(handlers), batch_(options.batch), hold_parked_(options.hold_parked) {}

  std::string_view consumer() const override { return consumer_.name(); }
  std::size_t job_size() const override { return batch_; }
  const ConsumerOptions& options() const override { return consumer_.options(); }
  bool is_paused() const override;
  bool has_left_over() const noexcept override;
  void tidy_up() const noexcept override;

 private:
  bool counts(const std::exception_ptr& error) const override;
  bool is_parked(const Message&) const override;
  std::optional<Result> count_failure(const Message&, const std::exception_ptr& failure) const override;
  JobResult run_handler(const Job& job) const override;

  TxConsumer& consumer_;
  const BatchHandlers& handlers_;
  const std::size_t batch_;
  const bool hold_parked_;
};

/// Runs one message under a lease.
class LeaseJobRunner : public JobRunner {
 public:
  LeaseJobRunner(LeaseConsumer& consumer, const LeaseHandler& handler) : consumer_(consumer), handler_(handler) {}

  std::string_view consumer() const override { return consumer_.name(); }
  std::size_t job_size() const override { return 1; }
  const ConsumerOptions& options() const override { return consumer_.options(); }
  bool is_paused() const override;

 private:
  bool counts(const std::exception_ptr& error) const override;
  bool is_parked(const Message&) const override;
  std::optional<Result> count_failure(const Message&, const std::exception_ptr& failure) const override;
  JobResult run_handler(const Job& job) const override;

  LeaseConsumer& consumer_;
  const LeaseHandler& handler_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
