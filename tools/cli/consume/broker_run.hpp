#pragma once

#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <txinbox/listener.hpp>
#include <txinbox/run.hpp>
#include <txinbox/tx_consumer.hpp>

#include "cli/consume/consume_options.hpp"
#include "cli/consume/message_reader.hpp"
#include "cli/sql/sql_script.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"
#include "console/stop_signals.hpp"

namespace txinbox::cli {

/// A line for standard error. A line end in the id of a message, or in a text of the broker, does not begin another
/// line, which could look as if it were about another message.
std::string problem_text(std::string_view name, std::string_view what);

/// The order for `run`. By default, several workers order by the record key on Kafka, where producers choose the
/// partition by it. On other brokers, a message can lack a record key, or have one that says nothing about its order.
Ordering order_of(const ConsumeOptions& options);

/// `consume --from`: runs the script for the messages of a broker, and reports how they ended.
class BrokerRun {
 public:
  BrokerRun(const ConsumeOptions& options, const Script& script, const MessageReader& messages, StopSignals& signals)
      : options_(options), script_(script), messages_(messages), signals_(signals) {}

  /// Counts an event of the consumer. The workers call it.
  void operator()(const Event& event);

  /// Shows an event of `run`.
  void operator()(const RunEvent& event);

  /// Runs until a signal comes, the source is idle, or an error prevents all further consumption. Then it prints the
  /// summary.
  ///
  /// Errors: as `txinbox::run`.
  ///
  /// @return the exit status.
  int run(Source& source, TxConsumer& consumer);

 private:
  Values values_of(const Delivery& delivery) const;
  void run_script(soci::session& session, Delivery& delivery) const;
  void run_together(soci::session& session, std::span<Delivery> deliveries) const;
  void report_problem(const RunEvent& event, std::string_view what);
  void print(std::string_view text);
  void draw();
  std::string summary(const RunSummary& summary) const;

  const ConsumeOptions& options_;
  const Script& script_;
  const MessageReader& messages_;
  StopSignals& signals_;
  std::mutex mutex_;  // guards the members below
  Output output_;
  Progress progress_;
  std::size_t acknowledged_ = 0;
  std::string lag_;
};

}  // namespace txinbox::cli
