#pragma once

#include <cstddef>
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

  /// Runs the handler. First it counts the failure of the earlier attempt that is proven, if there is one. The results
  /// contain the exceptions that handlers throw, or `HandlerError`s.
  JobResult run(const Job& job) const;

 private:
  /// Counts `Entry::proven`. Returns the result if the handler must not run after this.
  virtual std::optional<Result> count_proven_failure(Entry&) const = 0;
  virtual JobResult run_handler(const Job& job) const = 0;
};

/// Runs a batch in one transaction.
class TxJobRunner : public JobRunner {
 public:
  TxJobRunner(TxConsumer& consumer, const BatchHandlers& handlers, std::size_t batch)
      : consumer_(consumer), handlers_(handlers), batch_(batch) {}

  std::string_view consumer() const override { return consumer_.name(); }
  std::size_t job_size() const override { return batch_; }

 private:
  std::optional<Result> count_proven_failure(Entry&) const override;
  JobResult run_handler(const Job& job) const override;

  TxConsumer& consumer_;
  const BatchHandlers& handlers_;
  const std::size_t batch_;
};

/// Runs one message under a lease.
class LeaseJobRunner : public JobRunner {
 public:
  LeaseJobRunner(LeaseConsumer& consumer, const LeaseHandler& handler) : consumer_(consumer), handler_(handler) {}

  std::string_view consumer() const override { return consumer_.name(); }
  std::size_t job_size() const override { return 1; }

 private:
  std::optional<Result> count_proven_failure(Entry&) const override;
  JobResult run_handler(const Job& job) const override;

  LeaseConsumer& consumer_;
  const LeaseHandler& handler_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
