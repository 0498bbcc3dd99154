#include "cli/failed_options.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/key_file.hpp"
#include "console/duration.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

constexpr std::array states = {FailedState::failing, FailedState::running, FailedState::parked, FailedState::torn,
                               FailedState::discarded};

std::string check_age(const std::string& text) {
  if (parse_duration(text)) return {};
  return fmt::format("'{}' is no time with its unit, such as 30s, 10m, 1h or 7d", text);
}

}  // namespace

void FailedOptions::add_to(Command command) {
  database.add_to(command);
  command.option("--consumer", consumer, "Of this consumer").type("NAME");
  command.option("--older-than", older_than, "Whose last failure is longer ago than that: 10m, 1h, 7d")
      .type("TIME")
      .checked(check_age);
  command.option("--error-class", error_class, "Whose last failure is of this class, as the list shows it")
      .type("CLASS");
  add_keys_from(command, keys_from);
  command.option("key", key, "Of this business key; -- before one that begins with a dash").shown_as("[BUSINESS_KEY]");
  command.flag("--json", json, "Print JSON");
}

void FailedOptions::add_list_to(Command command) {
  add_to(command);
  std::vector<std::string> names;
  names.reserve(states.size());
  for (const FailedState each : states) names.emplace_back(to_string(each));
  command.option("--state", state, "In this state; default: all but discarded").type("STATE").one_of(names);
  command.option("--limit", limit, "The most that are listed, from 1 to 100000")
      .type("N")
      .with_default()
      .range(1, 100'000);
  command.flag("--payload", payload, "Print the payload of one message and nothing else; with --json as a member");
}

void FailedOptions::add_change_to(Command command, const std::vector<std::string>& changeable) {
  add_to(command);
  auto every = command.flag("--all", all, "All that the filters choose, instead of one");
  command.option("--state", state, "With --all: only those in this state")
      .type("STATE")
      .one_of(changeable)
      .needs(every);
}

FailedFilter FailedOptions::filter() const {
  FailedFilter filter{
      .consumer = consumer, .business_key = key, .state = failed_state(state), .error_class = error_class};
  if (!older_than.empty()) filter.older_than = std::chrono::ceil<std::chrono::seconds>(*parse_duration(older_than));
  filter.limit = limit;
  filter.payloads = payload;
  return filter;
}

void FailedOptions::check_choice(const std::string& command) const {
  if (has_file() && (all || !key.empty())) {
    throw UsageError(
        fmt::format("{}: either --keys-from FILE or {}, not both", command, all ? "--all" : "a BUSINESS_KEY"));
  }
  if (has_file() && consumer.empty()) {
    throw UsageError(fmt::format("{}: --keys-from needs --consumer NAME, which scopes the keys", command));
  }
  if (has_file()) return;
  if (all && !key.empty()) {
    throw UsageError(fmt::format("{}: either --all or a BUSINESS_KEY, not both", command));
  }
  if (!all && key.empty()) {
    throw UsageError(
        fmt::format("{}: say which message, with --consumer NAME BUSINESS_KEY, --keys-from FILE or --all", command));
  }
  if (!all && consumer.empty()) {
    throw UsageError(fmt::format("{}: a BUSINESS_KEY needs --consumer NAME, which scopes it", command));
  }
}

FailedOptions FailedOptions::with_key(const std::string& one) const {
  FailedOptions options = *this;
  options.key = one;
  return options;
}

std::optional<FailedState> failed_state(const std::string& name) {
  const auto* found = std::ranges::find_if(states, [&](FailedState each) { return to_string(each) == name; });
  return found == states.end() ? std::nullopt : std::optional(*found);
}

}  // namespace txinbox::cli
