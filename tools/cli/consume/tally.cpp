#include "cli/consume/tally.hpp"

#include <fmt/format.h>

#include "console/json_output.hpp"
#include "console/progress.hpp"

namespace txinbox::cli {
namespace {

unsigned long long rate(const Tally& tally, std::chrono::duration<double> elapsed) {
  if (elapsed.count() <= 0) return 0;
  return static_cast<unsigned long long>(static_cast<double>(tally.messages()) / elapsed.count());
}

}  // namespace

std::string summary(const Tally& tally, std::chrono::duration<double> elapsed, std::optional<std::size_t> stopped_at) {
  std::string text = fmt::format("consumed {}, already consumed {}, conflicts {}, parked {}, failed {}", tally.consumed,
                                 tally.already_consumed, tally.conflicts, tally.parked, tally.failed);
  if (tally.discarded > 0) text += fmt::format(", discarded {}", tally.discarded);
  text += fmt::format("  ({} messages/s)", grouped(rate(tally, elapsed)));
  if (stopped_at) text += fmt::format("  stopped at line {}", *stopped_at);
  return text;
}

std::string summary_json(const Tally& tally, std::chrono::duration<double> elapsed,
                         std::optional<std::size_t> stopped_at) {
  Json json{{"summary", true},
            {"consumed", tally.consumed},
            {"already_consumed", tally.already_consumed},
            {"conflicts", tally.conflicts},
            {"parked", tally.parked},
            {"failed", tally.failed},
            {"discarded", tally.discarded},
            {"seconds", elapsed.count()},
            {"messages_per_second", rate(tally, elapsed)},
            {"stopped_at_line", nullptr}};
  if (stopped_at) json.set("stopped_at_line", *stopped_at);
  return json.text();
}

}  // namespace txinbox::cli
