#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <txinbox/result.hpp>

#include "console/output.hpp"
#include "console/progress.hpp"

namespace txinbox::cli {

/// How the messages of one run ended.
struct Tally {
  std::size_t consumed = 0;
  std::size_t already_consumed = 0;
  std::size_t conflicts = 0;
  std::size_t parked = 0;
  std::size_t failed = 0;
  std::size_t discarded = 0;  ///< By an operator, before this run.

  std::size_t messages() const { return consumed + already_consumed + conflicts + parked + failed + discarded; }
  bool all_well() const { return conflicts + parked + failed == 0; }
};

/// The last line of the command's output. `stopped_after`: the last line that was handled, if the run stopped
/// early; 0: none.
std::string summary(const Tally& tally, std::chrono::duration<double> elapsed,
                    std::optional<std::size_t> stopped_after);

/// The same as a JSON object.
std::string summary_json(const Tally& tally, std::chrono::duration<double> elapsed,
                         std::optional<std::size_t> stopped_after);

/// Prints how each line ended, counts the outcomes, and prints the summary.
class Report {
 public:
  /// `json`: prints an object for each message.
  explicit Report(bool json) : json_(json) {}

  /// Reports a line for which the inbox has decided the outcome. `why`: printed to standard error; empty: nothing is
  /// printed.
  void ended(std::size_t line, std::string_view key, Outcome outcome, std::string_view why = {});

  /// Reports a line that failed. `outcome`: the word for it with `json`.
  void failed(std::size_t line, std::string_view key, std::string_view outcome, std::string_view why);

  /// Reports that the input could not be read after a line.
  void reading_failed(std::size_t line, int error_number);

  /// This line and all lines before it are done, including empty lines.
  void done_through(std::size_t line) { done_through_ = line; }

  /// Flushes the reports, and draws the progress. `read`: how many bytes of the input were read.
  ///
  /// @return false if nobody reads the output any more.
  bool flush(const Share& read);

  /// Prints the summary. `stopped_early`: also prints the last line that was handled, and the next one.
  ///
  /// @return false if it could not be written.
  bool sum_up(bool stopped_early);

  bool all_well() const { return tally_.all_well(); }

 private:
  void add_json(std::size_t line, std::string_view key, std::string_view outcome, std::string_view error = {});
  void message(std::string_view text);

  bool json_;
  Output output_;
  std::string pending_;  // lines for standard output
  Progress progress_;
  Tally tally_;
  std::size_t done_through_ = 0;
};

}  // namespace txinbox::cli
