// What must hold for the messages of consumers: when a handler begins, when the broker learns that a message is done,
// and at the end.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/workloads/consuming.hpp"

namespace txinbox::sim {

/// Whether the key has a claim that a handler has committed, and the service ended before it could remove the claim.
bool Consuming::has_abandoned_claim(const std::string& key) const {
  const std::vector<Values> rows =
      world_.server.query(fmt::format("SELECT attempt_token FROM txinbox_consumed_message WHERE consumer = 'svc' AND "
                                      "business_key = '{}' AND state = 'torn'",
                                      key));
  if (rows.empty()) return false;
  const auto claim = committed_claims_.find(rows.front().front().bytes);
  if (claim == committed_claims_.end()) return false;
  return claim->second->is_killed() || threads().has_ended(*claim->second);
}

bool Consuming::may_be_dead_letter(const std::string& key, const Sent& sent) const {
  // In a handler for a set, `Outbox::add` uses the code for SQLite, which does not know the error of a stale sequence.
  const bool may_have_stale_numbers =
      publishing_ != nullptr && world_.plan.handlers != HandlerKind::one && world_.server.had_stale_sequence();
  return !sent.can_succeed || sent.is_hurt || sent.may_have_failed(world_.plan.max_attempts) ||
         may_have_stale_numbers ||
         (sent.is_claim_committed && (world_.had_failover_since(sent.sent_at) || has_abandoned_claim(key)));
}

/// The broker has learned that a message is done. It will not deliver it again.
void Consuming::end_of(const BrokerMessage& message, const DeadLetter* letter) {
  const std::string& key = message.body;
  Story& story = world_.story;
  Sent& sent = sent_.at(key);
  const std::size_t effects = world_.effects_of(key);
  if (letter != nullptr) {
    story.tell(key, "the broker has the dead letter of {}: {} ({})", message.id, letter->reason, letter->error_class);
    sent.is_dead_letter = true;
    if (is_held(sent)) story.wrong(key, "is a dead letter, although it must wait for the operator");
    if (!may_be_dead_letter(key, sent)) story.wrong(key, "is a dead letter although its handler succeeds");
    if (effects > sent.most_torn_effects()) story.wrong(key, "is a dead letter with {} effects", effects);
    return;
  }
  story.tell(key, "{} is acknowledged", message.id);
  if (sent.is_dead_letter) return;
  if (!sent.may_be_acknowledged() && !operator_.decision(key).is_discarded) {
    story.wrong(key, "is acknowledged although its handler cannot succeed");
  }
  if (!has_right_effects(key, sent, effects) && !world_.lost.contains(key)) {
    story.wrong(key, "is acknowledged with {} effects", effects);
  }
}

/// Whether `run` waits for the operator if the message is parked.
bool Consuming::is_held(const Sent& sent) const noexcept { return world_.plan.holds_parked && sent.has_order; }

/// The handler of the message begins. The message is not discarded or erased, and no earlier message of its sequence is
/// parked.
void Consuming::check_begin(const std::string& key, const Sent& sent) {
  if (operator_.decision(key).is_discard_done && !world_.had_failover_since(sent.sent_at))
    world_.story.wrong(key, "runs although it is discarded");
  eraser_.check_begin(key, sent.sent_at);
  if (sent.sequence.empty()) return;
  for (const std::string& each : operator_.parked()) {
    const Sent& parked = sent_.at(each);
    if (world_.had_failover_since(parked.sent_at)) continue;  // it can undo that the operator has discarded it
    if (parked.sequence == sent.sequence && parked.position < sent.position) {
      world_.story.wrong(key, "runs although {}, which comes before it in its lane, is parked", each);
    }
  }
}

/// Whether a message that is acknowledged may have so many effects.
bool Consuming::has_right_effects(const std::string& key, const Sent& sent, std::size_t effects) const {
  if (operator_.decision(key).is_discarded) return may_be_left(sent, effects);
  // Before it was repaired, its handler may have committed its effect without its claim.
  const std::size_t most = std::max(sent.right_effects(), sent.is_repaired ? sent.most_torn_effects() : 0);
  return effects >= sent.right_effects() && effects <= most;
}

/// Whether a message that is discarded, or that is a dead letter, may have so many effects. A failover can undo the
/// decision, or that the message was parked. Then it runs again, and its handler may succeed now.
bool Consuming::may_be_left(const Sent& sent, std::size_t effects) const {
  const bool may_have_run = world_.had_failover_since(sent.sent_at) && sent.may_be_acknowledged();
  return effects <= sent.most_torn_effects() || (effects == 1 && may_have_run);
}

void Consuming::check_end() {
  for (const auto& [key, sent] : sent_) {
    const std::size_t effects = world_.effects_of(key);
    const bool is_right = sent.is_dead_letter ? may_be_left(sent, effects)
                                              : has_right_effects(key, sent, effects) ||
                                                    (world_.lost.contains(key) && effects < sent.right_effects());
    if (!is_right) world_.story.wrong(key, "has {} effects at the end", effects);
  }
  check_order();
}

/// Whether later messages of its sequence may have their effects before this one. They go on if it is a dead letter, or
/// if the operator discards it. A failover can undo that, and the broker can deliver the message again.
bool Consuming::may_be_late(const std::string& key) const {
  const Sent& sent = sent_.at(key);
  const bool was_left = sent.is_dead_letter || operator_.decision(key).is_discarded;
  return was_left && world_.had_failover_since(sent.sent_at);
}

/// The numbers of the effects have the order in which the handlers wrote them.
void Consuming::check_order() {
  std::map<std::string, std::pair<std::size_t, std::string>> last;  // of each sequence
  for (const Values& row : world_.server.query("SELECT business_key FROM effect ORDER BY number")) {
    const std::string& key = row.front().bytes;
    const auto found = sent_.find(key);
    if (found == sent_.end() || found->second.sequence.empty() || world_.lost.contains(key)) continue;
    const Sent& sent = found->second;
    if (may_be_late(key)) continue;
    auto& [position, before] = last[sent.sequence];
    if (!before.empty() && sent.position < position) {
      world_.story.wrong(key, "has its effect after {}, which comes after it in its lane", before);
    }
    position = sent.position;
    before = key;
  }
}

}  // namespace txinbox::sim
