// The checks of InboxWorld: what a delivery has returned, against the rows and the effects.

#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "orders/inbox_world.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {

namespace {

/// Whether a handler breaks the rules, so that its message may be parked or have no effect.
constexpr bool misbehaves(InboxAct act) { return act >= InboxAct::commits && act <= InboxAct::forgets; }

/// Whether a handler can commit the claims of its transaction, or SQL of its own.
constexpr bool may_commit(InboxAct act) {
  return act == InboxAct::commits || act == InboxAct::commits_later || act == InboxAct::restarts ||
         act == InboxAct::works_outside;
}

}  // namespace

/// Whether the library knows what a handler has committed of another message of its batch when it commits.
///
/// - The handler of a later message had not begun. So the library removes the claim of that message, if nothing
///   disturbs this.
/// - An earlier message was complete if it had a savepoint of its own: if the batch had failed before.
bool InboxWorld::is_apart(const Sent& sent) const {
  if (is_set()) return false;
  if (sent.key == "c") return act_ != InboxAct::restarts && !database_.has_disturbed_library();
  return act_ == InboxAct::commits_later && !is_disturbed_;
}

void InboxWorld::wrong(const Sent& sent, const std::string& text) {
  if (problem_.empty()) problem_ = fmt::format("{} {}; the last delivery ended with {}", sent.key, text, sent.end);
}

std::int64_t InboxWorld::effects_of(const Sent& sent) const {
  return database_.value("SELECT count(*) FROM effect WHERE business_key = '" + sent.key + "'");
}

/// Whether the message has a row for which this is true.
bool InboxWorld::has_row(const Sent& sent, const std::string& condition) const {
  return database_.value("SELECT count(*) FROM txinbox_consumed_message WHERE business_key = '" + sent.key + "' AND " +
                         condition) == 1;
}

void InboxWorld::end(Sent& sent, const Result& result) {
  const std::int64_t before = std::exchange(sent.effects, effects_of(sent));
  sent.end = to_string(result.outcome);
  if (result.error) sent.end += fmt::format(" ({})", error_class(result.error));
  const Action action = result.outcome == Outcome::failed ? action_for(result.error) : action_for(result);
  if (result.outcome == Outcome::consumed && ++sent.consumed > 1 && mode_ != InboxMode::valid_for) {
    wrong(sent, "is consumed twice");
  }
  if (++sent.deliveries == 1 && result.outcome == Outcome::already_consumed && mode_ != InboxMode::valid_for) {
    wrong(sent, "is a duplicate although nobody has consumed it before");
  }
  // No other worker takes a lease over during a delivery.
  if (result.error && code_of(result.error) == ErrorCode::lease_lost && has_row(sent, "state = 'consumed'")) {
    wrong(sent, "is told as lost although it was completed");
  }
  sent.done = action == Action::acknowledge || action == Action::dead_letter;
  if (action == Action::stop) wrong(sent, "stops the consumer");
  if (mode_ == InboxMode::valid_for && sent.effects > before + 1 + sent.unknown)
    wrong(sent, "has two effects of one delivery");
  if (mode_ == InboxMode::valid_for && result.outcome == Outcome::consumed && sent.act != InboxAct::refuses &&
      sent.effects != before + 1) {
    wrong(sent, "is consumed without an effect of this delivery");
  }
  check_end(sent, result);
}

void InboxWorld::check_end(const Sent& sent, const Result& result) {
  if (!sent.done) return;
  const InboxAct act = sent.act;
  switch (result.outcome) {
    case Outcome::consumed:
    case Outcome::already_consumed:
      if (act == InboxAct::refuses ? sent.effects != 0 : sent.effects < 1)
        wrong(sent, "is acknowledged without its effect");
      if (misbehaves(act)) wrong(sent, "counts as consumed");
      if (act == InboxAct::fails) wrong(sent, "counts as consumed");
      if (act == InboxAct::stores && result.stored != "result of " + sent.key) wrong(sent, "has another result");
      if (act == InboxAct::refuses && result.stored != "refusal of " + sent.key) wrong(sent, "has another refusal");
      if (act == InboxAct::succeeds && result.stored) wrong(sent, "has a result");
      break;
    case Outcome::parked:
      if (act == InboxAct::swallows && sent.effects == 0) break;  // it must not do this
      if (misbehaves(act) || act == InboxAct::fails) break;
      if (may_commit(act_) && database_.rule() != CommitRule::refuses && !is_apart(sent)) break;
      wrong(sent, "is parked");
      break;
    default:
      wrong(sent, "ends in a way that it cannot");
  }
}

/// Somebody must hear of each message whose effect may be half there.
void InboxWorld::check_heard(const Sent& sent) {
  const bool is_torn = has_row(sent, "state = 'torn'");
  if (is_torn == (sent.torn == 1)) return;
  wrong(sent, fmt::format("is {}torn, and there were {} events", is_torn ? "" : "not ", sent.torn));
}

void InboxWorld::check(const Sent& sent) {
  if (mode_ == InboxMode::valid_for) return;
  const std::int64_t effects = effects_of(sent);
  if (mode_ == InboxMode::lease) {
    if (effects != sent.effects) wrong(sent, "has an effect after it was acknowledged");
    return;
  }
  // The next message of the set has opened another transaction. After a lost connection, it may have been ours.
  if (is_set() && is_disturbed_ && sent.act == InboxAct::works_outside) return;
  // A delivery with one attempt records what the handler has committed in one more transaction. Two disturbances can
  // keep it from that.
  if (is_disturbed_twice_ && database_.rule() == CommitRule::watches && sent.act == InboxAct::works_outside) return;
  // Nobody can tell whether a handler's own COMMIT without a reply has committed.
  if (effects > 1 + sent.unknown) wrong(sent, "has more than one effect");
  if (has_row(sent, "state = 'consumed'") && effects == 0 && sent.act != InboxAct::refuses) {
    wrong(sent, "counts as consumed without its effect");
  }
  if (effects > sent.unknown && !has_row(sent, "state IN ('consumed', 'torn', 'parked')")) {
    wrong(sent, "has an effect without a row");
  }
  if (sent.done && sent.act == InboxAct::fails && effects != 0) wrong(sent, "has failed, and has an effect");
}

}  // namespace txinbox::test
