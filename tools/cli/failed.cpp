#include "cli/failed.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "cli/help_text.hpp"
#include "cli/key_file.hpp"
#include "cli/subcommands.hpp"
#include "console/duration.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

constexpr std::array states = {FailedState::failing, FailedState::running, FailedState::parked, FailedState::torn,
                               FailedState::discarded};

std::string check_age(const std::string& text) {
  if (parse_duration(text)) return {};
  return fmt::format("'{}' is not a time with its unit, such as 30s, 10m, 1h or 7d", text);
}

}  // namespace

void FailedOptions::add_to(Command command) {
  database.add_to(command);
  command.option("--consumer", consumer, "Only of this consumer").type("NAME");
  command.option("--older-than", older_than, "Only those whose last failure is older than this: 10m, 1h, 7d")
      .type("TIME")
      .checked(check_age);
  command.option("--error-class", error_class, "Only those whose last failure has this class, as the list shows it")
      .type("CLASS");
  add_keys_from(command, keys_from);
  command.option("key", key, "Only with this business key; write -- before a key that begins with a dash")
      .shown_as("[BUSINESS_KEY]");
  command.flag("--json", json, "Print JSON");
}

void FailedOptions::add_list_to(Command command) {
  add_to(command);
  std::vector<std::string> names;
  names.reserve(states.size());
  for (const FailedState each : states) names.emplace_back(to_string(each));
  command.option("--state", state, "Only in this state; default: all except discarded").type("STATE").one_of(names);
  command.option("--limit", limit, "The most rows to list, from 1 to 100000")
      .type("N")
      .with_default()
      .range(1, 100'000);
  command.flag("--payload", payload, "Print only the payload of one message; with --json, add it as a member");
}

void FailedOptions::add_change_to(Command command, const std::vector<std::string>& changeable) {
  add_to(command);
  by.add_to(command);
  auto every = command.flag("--all", all, "All messages that the filters choose, instead of one");
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
    throw UsageError(fmt::format("{}: --keys-from needs --consumer NAME, because keys belong to a consumer", command));
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
    throw UsageError(
        fmt::format("{}: a BUSINESS_KEY needs --consumer NAME, because keys belong to a consumer", command));
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

void add_failed(Command app, Run& run) {
  auto failed = app.subcommand("failed", "List failed messages, let them run again, or discard them");
  failed.requires_subcommand();

  auto listed = std::make_shared<FailedOptions>();
  auto list = failed.subcommand("list", "The messages that failed and are not consumed, the latest first");
  listed->add_list_to(list);
  list.add_help({"txinbox failed list --consumer order-service --state parked",
                 "txinbox failed list --payload --consumer order-service o22"},
                {{exit_ok, "success, even if the list is empty"},
                 {exit_found, "a given key is not listed, or has no payload"},
                 usage_status,
                 database_status,
                 output_status});
  list.on_chosen(run, [listed] { return run_failed_list(*listed); });

  auto retried = std::make_shared<FailedOptions>();
  auto retry = failed.subcommand("retry", "Let the next delivery of a parked or failing message run");
  retried->add_change_to(retry, {"parked", "failing"});
  retry.add_help({"txinbox failed retry --consumer order-service o22",
                  "txinbox failed retry --all --error-class 'postgresql 40001' --older-than 10m"},
                 {{exit_ok, "the chosen messages were changed"},
                  {exit_found, "nothing was changed, or not all keys of the file"},
                  usage_status,
                  database_status,
                  output_status});
  retry.on_chosen(run, [retried] { return run_failed_retry(*retried); });

  auto discarded = std::make_shared<FailedOptions>();
  auto discard = failed.subcommand("discard", "Discard a message permanently: later deliveries do not run");
  discarded->add_change_to(discard, {"parked", "torn", "failing"});
  discard.add_help({"txinbox failed discard --consumer order-service o22",
                    "txinbox failed discard --consumer order-service --keys-from keys.txt"},
                   {{exit_ok, "the chosen messages were changed"},
                    {exit_found, "nothing was changed, or not all keys of the file"},
                    usage_status,
                    database_status,
                    output_status});
  discard.on_chosen(run, [discarded] { return run_failed_discard(*discarded); });
}

}  // namespace txinbox::cli
