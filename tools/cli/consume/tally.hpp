#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

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

/// The command's last line. `stopped_at`: the last line that was dealt with, when it stopped early.
std::string summary(const Tally& tally, std::chrono::duration<double> elapsed, std::optional<std::size_t> stopped_at);

/// The same as a JSON object.
std::string summary_json(const Tally& tally, std::chrono::duration<double> elapsed,
                         std::optional<std::size_t> stopped_at);

}  // namespace txinbox::cli
