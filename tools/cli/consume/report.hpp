#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <txinbox/result.hpp>

#include "cli/consume/tally.hpp"
#include "console/output.hpp"
#include "console/progress.hpp"

namespace txinbox::cli {

/// Tells how each line ended, counts, and sums up.
class Report {
 public:
  /// `json`: an object for each message.
  explicit Report(bool json) : json_(json) {}

  /// Of a line whose message's fate the inbox decided. `why`: for standard error; empty: nothing.
  void ended(std::size_t line, std::string_view key, Outcome outcome, std::string_view why = {});

  /// Of a line that failed. `outcome`: its word for `json`.
  void failed(std::size_t line, std::string_view key, std::string_view outcome, std::string_view why);

  /// Reading failed behind a line.
  void reading_failed(std::size_t line, int error_number);

  /// This line and those before it are done, empty ones included.
  void done_through(std::size_t line) { done_through_ = line; }

  /// Has what was told read, and draws the progress. `read`: how much of the input was read.
  ///
  /// @return false when nobody reads it any more.
  bool flush(const Share& read);

  /// Prints the summary. `stopped_early`: with the line where it stopped.
  ///
  /// @return false when it could not be written.
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
