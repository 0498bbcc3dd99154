#include "page/actions.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>
#include <txinbox/error.hpp>
#include <txinbox/failed_messages.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/redrive.hpp>

#include "shared/row_json.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace http {
namespace {

using nlohmann::json;

constexpr std::size_t most_groups = 1'000'000;

Error wrong(const std::string& text) { return Error(ErrorCode::invalid_argument, text); }

/// The members of a change.
class Body {
 public:
  explicit Body(std::string_view text) : json_(json::parse(text, nullptr, false)) {
    if (!json_.is_object()) throw wrong("the body of a change must be a JSON object");
    for (const auto& [name, value] : json_.items()) {
      if (std::ranges::find(members, name) == members.end()) throw wrong("a change has no such member: " + name);
    }
  }

  /// The text of a member; empty if it is missing.
  std::string text(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return {};
    if (!found->is_string()) throw wrong(std::string(name) + " must be a text");
    return found->get<std::string>();
  }

  std::string required(const char* name) const {
    std::string value = text(name);
    if (value.empty()) throw wrong(std::string(name) + " is missing");
    return value;
  }

  std::optional<std::uint64_t> number(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || found->is_null()) return std::nullopt;
    if (!found->is_number_unsigned()) throw wrong(std::string(name) + " must be a number");
    return found->get<std::uint64_t>();
  }

 private:
  static constexpr std::array<std::string_view, 10> members{"consumer",    "business_key", "state", "error_class",
                                                            "expected",    "failed_until", "to",    "id",
                                                            "for_seconds", "reason"};

  json json_;
};

ActionResult changed(std::size_t messages) { return {.text = json{{"changed", messages}}.dump()}; }

std::optional<FailedState> state_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const FailedState each : {FailedState::failing, FailedState::parked, FailedState::torn}) {
    if (to_string(each) == name) return each;
  }
  throw wrong("state must be failing, parked or torn");
}

/// One message, or all that the members choose. A message that has failed again since the operator has looked is not
/// among them.
FailedFilter failed_filter(const Body& body) {
  FailedFilter filter{.consumer = body.required("consumer"),
                      .business_key = body.text("business_key"),
                      .state = state_of(body.text("state")),
                      .error_class = body.text("error_class"),
                      .limit = 1};
  if (!filter.business_key.empty()) return filter;
  const auto expected = body.number("expected");
  filter.failed_until = component::read_time(body.text("failed_until"));
  if (!expected || *expected == 0 || !filter.failed_until) {
    throw wrong("a change of many messages needs the number that is expected, and failed_until, a time in UTC");
  }
  filter.limit = static_cast<std::size_t>(*expected);
  return filter;
}

/// The answer if not as many messages are there as the change expects. The operator has seen another number.
std::optional<ActionResult> refuses_count(Connection& connection, const Body& body, const FailedFilter& filter) {
  if (!filter.business_key.empty()) return std::nullopt;
  std::int64_t messages = 0;
  FailedFilter all = filter;
  all.limit = most_groups;
  for (const FailedGroup& group : group_failed(connection, all)) messages += group.messages;
  if (static_cast<std::uint64_t>(messages) == *body.number("expected")) return std::nullopt;
  return ActionResult{
      .status = 409,
      .text = json{{"error", "there are " + std::to_string(messages) + " such messages now"}, {"messages", messages}}
                  .dump()};
}

using FailedChange = std::size_t (*)(ConnectionRef, const FailedFilter&, const std::optional<OperatorAction>&);

template <FailedChange change>
ActionResult change_failed(Connection& connection, const Body& body, const OperatorAction& by) {
  const FailedFilter filter = failed_filter(body);
  if (auto refused = refuses_count(connection, body, filter)) return std::move(*refused);
  return changed(change(connection, filter, by));
}

ActionResult redrive(Connection& connection, const Body& body, const OperatorAction& by) {
  FailedFilter filter = failed_filter(body);
  if (filter.state && filter.state != FailedState::parked) throw wrong("only parked messages are published again");
  filter.state = FailedState::parked;
  if (auto refused = refuses_count(connection, body, filter)) return std::move(*refused);
  const StoredRedriveSummary done = redrive_stored(connection, body.required("to"),
                                                   {.consumer = filter.consumer,
                                                    .business_key = filter.business_key,
                                                    .error_class = filter.error_class,
                                                    .failed_until = filter.failed_until,
                                                    .max = filter.limit,
                                                    .by = by});
  return {.text = json{{"changed", done.added}, {"without_payload", done.without_payload}}.dump()};
}

ActionResult pause(Connection& connection, const Body& body, const OperatorAction& by) {
  std::optional<std::chrono::seconds> duration;
  if (const auto seconds = body.number("for_seconds"); seconds) {
    if (*seconds > std::numeric_limits<std::int32_t>::max()) throw wrong("for_seconds is too large");
    duration = std::chrono::seconds(*seconds);
  }
  pause_consumer(connection, body.required("consumer"), by, duration);
  return changed(1);
}

ActionResult resume(Connection& connection, const Body& body, const OperatorAction& by) {
  return changed(resume_consumer(connection, body.required("consumer"), by) ? 1 : 0);
}

ActionResult retry_one(Connection& connection, const Body& body, const OperatorAction& by) {
  return changed(retry_outbox(connection, {.id = body.required("id")}, by));
}

ActionResult discard_one(Connection& connection, const Body& body, const OperatorAction& by) {
  return changed(discard_outbox(connection, {.id = body.required("id")}, by));
}

using ChangeOf = ActionResult (*)(Connection&, const Body&, const OperatorAction&);

constexpr std::array<std::pair<std::string_view, ChangeOf>, 7> actions{
    {{"failed/retry", change_failed<retry_failed>},
     {"failed/discard", change_failed<discard_failed>},
     {"failed/redrive", redrive},
     {"pause", pause},
     {"resume", resume},
     {"outbox/retry", retry_one},
     {"outbox/discard", discard_one}}};

}  // namespace

std::optional<ActionResult> run_action(Connection& connection, std::string_view name, std::string_view body,
                                       const std::string& user) {
  for (const auto& [action, run] : actions) {
    if (action != name) continue;
    const Body members(body);
    return run(connection, members, {.actor = user, .reason = members.text("reason")});
  }
  return std::nullopt;
}

}  // namespace http
TXINBOX_NAMESPACE_END
}  // namespace txinbox
