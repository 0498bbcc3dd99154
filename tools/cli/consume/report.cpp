#include "cli/consume/report.hpp"

#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/text.hpp"
#include "console/json_output.hpp"
#include "console/progress.hpp"
#include "message/json/json_value.hpp"

namespace txinbox::cli {
namespace {

unsigned long long rate(const Tally& tally, std::chrono::duration<double> elapsed) {
  if (elapsed.count() <= 0) return 0;
  return static_cast<unsigned long long>(static_cast<double>(tally.messages()) / elapsed.count());
}

}  // namespace

std::string summary(const Tally& tally, std::chrono::duration<double> elapsed,
                    std::optional<std::size_t> stopped_after) {
  std::string text = fmt::format("consumed {}, already consumed {}, conflicts {}, parked {}, failed {}", tally.consumed,
                                 tally.already_consumed, tally.conflicts, tally.parked, tally.failed);
  if (tally.discarded > 0) text += fmt::format(", discarded {}", tally.discarded);
  text += fmt::format("  ({} messages/s)", grouped(rate(tally, elapsed)));
  if (stopped_after) {
    text += *stopped_after == 0 ? "  stopped: no line is handled"
                                : fmt::format("  stopped: last line handled {}", *stopped_after);
    text += fmt::format(", go on at line {}", *stopped_after + 1);
  }
  return text;
}

std::string summary_json(const Tally& tally, std::chrono::duration<double> elapsed,
                         std::optional<std::size_t> stopped_after) {
  Json json{{"summary", true},
            {"consumed", tally.consumed},
            {"already_consumed", tally.already_consumed},
            {"conflicts", tally.conflicts},
            {"parked", tally.parked},
            {"failed", tally.failed},
            {"discarded", tally.discarded},
            {"seconds", elapsed.count()},
            {"messages_per_second", rate(tally, elapsed)},
            {"last_line_handled", nullptr},
            {"go_on_at_line", nullptr}};
  if (stopped_after) {
    json.set("last_line_handled", *stopped_after);
    json.set("go_on_at_line", *stopped_after + 1);
  }
  return json.text();
}

void Report::ended(std::size_t line, std::string_view key, Outcome outcome, std::string_view why) {
  switch (outcome) {
    case Outcome::consumed:
      ++tally_.consumed;
      break;
    case Outcome::already_consumed:
      ++tally_.already_consumed;
      break;
    case Outcome::conflict:
      ++tally_.conflicts;
      break;
    case Outcome::parked:
      ++tally_.parked;
      break;
    case Outcome::discarded:
      ++tally_.discarded;
      break;
    case Outcome::in_progress:
    case Outcome::postponed:
    case Outcome::failed:
    case Outcome::not_run:
      ++tally_.failed;
      break;
  }
  if (!why.empty()) message(fmt::format("line {}: {}", line, why));
  if (json_) add_json(line, key, to_string(outcome));
}

void Report::failed(std::size_t line, std::string_view key, std::string_view outcome, std::string_view why) {
  ++tally_.failed;
  const std::string text = detail::one_line(why);
  message(fmt::format("line {}: {}", line, text));
  if (json_) add_json(line, key, outcome, text);
}

void Report::reading_failed(std::size_t line, int error_number) {
  ++tally_.failed;
  message(fmt::format("line {}: reading failed: {}", line + 1, std::generic_category().message(error_number)));
}

void Report::message(std::string_view text) {
  if (!pending_.empty()) output_.lines(pending_);  // so that a terminal shows both streams in the right order
  pending_.clear();
  progress_.message(text);
}

void Report::add_json(std::size_t line, std::string_view key, std::string_view outcome, std::string_view error) {
  pending_ += fmt::format("{{\"line\":{}", line);
  if (!key.empty()) {
    pending_ += ",\"key\":";
    detail::append_json_string(pending_, key);
  }
  pending_ += fmt::format(",\"outcome\":\"{}\"", outcome);
  if (!error.empty()) {
    pending_ += ",\"error\":";
    pending_ += json_text(error);
  }
  pending_ += "}\n";
}

bool Report::flush(const Share& read) {
  if (!pending_.empty()) output_.lines(pending_);
  pending_.clear();
  progress_.update(tally_.messages(), done_through_, read);
  return !output_.failed();
}

bool Report::sum_up(bool stopped_early) {
  progress_.erase();
  std::optional<std::size_t> stopped_after;
  if (stopped_early) stopped_after = done_through_;
  pending_ += json_ ? summary_json(tally_, progress_.elapsed(), stopped_after)
                    : summary(tally_, progress_.elapsed(), stopped_after);
  pending_ += '\n';
  output_.lines(pending_);
  return !output_.failed();
}

}  // namespace txinbox::cli
