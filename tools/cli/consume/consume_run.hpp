#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <txinbox/tx_consumer.hpp>

#include "cli/consume/batch_reader.hpp"
#include "cli/consume/consume_options.hpp"
#include "cli/consume/report.hpp"
#include "cli/consume/script_handler.hpp"
#include "console/stop_signals.hpp"
#include "console/wait_notice.hpp"

namespace txinbox::cli {

/// Consumes batch after batch, and reports how each line ended.
class ConsumeRun {
 public:
  ConsumeRun(const ConsumeOptions& options, const Script& script, const MessageReader& messages, TxConsumer& consumer,
             StopSignals& signals, WaitNotice& notice)
      : options_(options),
        script_(script),
        messages_(messages),
        consumer_(consumer),
        signals_(signals),
        report_(options.json),
        notice_(notice) {}

  /// Runs until the input ends, a signal comes, or an error prevents all further consumption. Then it prints the
  /// summary.
  ///
  /// @return the exit status.
  int run(int input_fd);

 private:
  enum class Next { go_on, stop_failed, stop_database, stop_signal };

  struct Range {
    std::size_t begin;
    std::size_t end;
  };

  Next consume(Batch& batch);
  void consume_some(Batch& batch, ScriptHandler& handler, Range range, std::vector<Result>& results);
  Next report_result(std::size_t line, std::string_view key, const Result& result, const ScriptHandler::Run& run);
  Next report_failed(std::size_t line, std::string_view key, std::string_view outcome, std::string_view why);
  Next after_failure() const { return options_.stop_on_error ? Next::stop_failed : Next::go_on; }

  const ConsumeOptions& options_;
  const Script& script_;
  const MessageReader& messages_;
  TxConsumer& consumer_;
  StopSignals& signals_;
  Report report_;
  WaitNotice& notice_;
};

}  // namespace txinbox::cli
