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

/// The states of failed messages that a change can change.
constexpr std::array changeable{FailedState::parked, FailedState::failing, FailedState::torn};

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
  static constexpr std::array<std::string_view, 11> members{"consumer", "business_key", "state",   "error_class",
                                                            "expected", "failed_until", "at_most", "to",
                                                            "id",       "for_seconds",  "reason"};

  json json_;
};

ActionResult changed(std::size_t messages) { return {.text = json{{"changed", messages}}.dump()}; }

std::optional<FailedState> state_of(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const FailedState each : changeable) {
    if (to_string(each) == name) return each;
  }
  throw wrong("state must be failing, parked or torn");
}

/// One message, or a group, of which `limit` messages are changed. A message that has failed again since the operator
/// has looked is not in the group.
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
  const auto at_most = body.number("at_most").value_or(*expected);
  if (at_most == 0) throw wrong("at_most must be more than 0");
  filter.limit = static_cast<std::size_t>(std::min(*expected, at_most));
  return filter;
}

bool is_one(const FailedFilter& filter) { return !filter.business_key.empty(); }

/// The answer if not as many messages are there as the change expects. The operator has seen another number.
std::optional<ActionResult> refuses_count(Connection& connection, const Body& body, const FailedFilter& filter) {
  if (is_one(filter)) return std::nullopt;
  const std::uint64_t messages = count_failed(connection, filter).messages;
  if (messages == *body.number("expected")) return std::nullopt;
  return ActionResult{
      .status = 409,
      .text = json{{"error", "there are " + std::to_string(messages) + " such messages now"}, {"messages", messages}}
                  .dump()};
}

/// The answer to a change of one message, or of a group or a part of it. `left` is how many of the group are left. They
/// are counted if the change has found less to change than it may: some cannot be changed, or somebody else has changed
/// some meanwhile.
json done(Connection& connection, const Body& body, const FailedFilter& filter, std::size_t messages) {
  json answer{{"changed", messages}};
  if (is_one(filter)) return answer;
  answer["left"] =
      messages == filter.limit ? *body.number("expected") - messages : count_failed(connection, filter).messages;
  return answer;
}

using FailedChange = std::size_t (*)(ConnectionRef, const FailedFilter&, const std::optional<OperatorAction>&);

/// Changes at most `limit` messages. Without a state, it asks for one state after the other. Otherwise, messages that
/// no change changes, such as those with a lease, could take all places of each part.
template <FailedChange change>
std::size_t change_part(Connection& connection, const FailedFilter& filter, const OperatorAction& by) {
  if (is_one(filter) || filter.state) return change(connection, filter, by);
  std::size_t messages = 0;
  FailedFilter part = filter;
  for (const FailedState state : changeable) {
    part.state = state;
    part.limit = filter.limit - messages;
    messages += change(connection, part, by);
  }
  return messages;
}

template <FailedChange change>
ActionResult change_failed(Connection& connection, const Body& body, const OperatorAction& by) {
  const FailedFilter filter = failed_filter(body);
  if (auto refused = refuses_count(connection, body, filter)) return std::move(*refused);
  return {.text = done(connection, body, filter, change_part<change>(connection, filter, by)).dump()};
}

ActionResult redrive(Connection& connection, const Body& body, const OperatorAction& by) {
  FailedFilter filter = failed_filter(body);
  if (filter.state && filter.state != FailedState::parked) throw wrong("only parked messages are published again");
  filter.state = FailedState::parked;
  if (auto refused = refuses_count(connection, body, filter)) return std::move(*refused);
  json answer = done(connection, body, filter, redrive_stored(connection, body.required("to"), filter, by));
  const FailedCount parked = count_failed(connection, filter);
  answer["without_payload"] = parked.messages - parked.with_payload;
  return {.text = answer.dump()};
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
