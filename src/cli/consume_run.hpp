#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include <txinbox/tx_consumer.hpp>

#include "consume_options.hpp"
#include "line_reader.hpp"
#include "message_reader.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "stop_signals.hpp"
#include "tally.hpp"

namespace txinbox::cli {

/// Consumes line after line and tells how each ended.
class ConsumeRun {
 public:
  ConsumeRun(const ConsumeOptions& options, const Script& script, const Dialect& dialect, const MessageReader& messages,
             TxConsumer& consumer, StopSignals& signals)
      : options_(options),
        script_(script),
        dialect_(dialect),
        messages_(messages),
        consumer_(consumer),
        signals_(signals) {}

  /// Until the input ends, a signal comes, or nothing can be consumed any more; then prints the
  /// summary.
  /// @return the exit status.
  int run(int input_fd);

 private:
  enum class Next { go_on, stop_failed, stop_database, stop_signal };

  Next handle(LineReader::Status status, const std::string& line);
  Next consume(const std::string& line);
  Next settle(const Result& result);
  Next settle(const std::exception_ptr& error);
  Next fail(std::string_view outcome, const std::string& why);
  void tell(std::string_view outcome, std::string_view error = {});
  int finish(Next last);

  const ConsumeOptions& options_;
  const Script& script_;
  const Dialect& dialect_;
  const MessageReader& messages_;
  TxConsumer& consumer_;
  StopSignals& signals_;

  Output output_;
  Progress progress_;
  Tally tally_;
  std::size_t line_ = 0;       // in hand
  std::size_t last_line_ = 0;  // dealt with
  std::string key_;            // of the line in hand, as far as it is known
  bool handler_ran_ = false;
  std::size_t statement_ = 0;  // that the handler is at, from 1
};

}  // namespace txinbox::cli
