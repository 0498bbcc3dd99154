#include "consume/batch_run.hpp"

#include <algorithm>
#include <numeric>

#include "backend/failure.hpp"
#include "backend/session.hpp"
#include "consume/run_handler.hpp"
#include "tables/conflicting_message_table.hpp"
#include "transaction/claim.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

BatchRun::BatchRun(const ConsumerContext& context, const HandlersOfBatch& handlers, std::span<const Message> batch,
                   ClaimRecovery& recovery, SessionHandle& session, GuardedTransaction& transaction,
                   std::span<BatchItem* const> part, const ErasedKeyReading& erased)
    : context_(context),
      handlers_(handlers),
      batch_(batch),
      recovery_(recovery),
      session_(session),
      transaction_(transaction),
      part_(part),
      erased_(erased) {
  sort_keys();
  staged_.reserve(part_.size());
}

void BatchRun::sort_keys() {
  const auto key_at = [&](std::size_t at) -> const std::string& { return part_[at]->message->business_key; };
  std::vector<std::size_t> order(part_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, key_at);
  key_of_.resize(part_.size());
  for (const std::size_t at : order) {
    if (first_of_key_.empty() || key_at(first_of_key_.back()) != key_at(at)) first_of_key_.push_back(at);
    key_of_[at] = first_of_key_.size() - 1;
  }
  keys_.resize(first_of_key_.size());
}

std::vector<backend::ClaimRequest> BatchRun::claim_requests() const {
  std::vector<backend::ClaimRequest> requests;
  requests.reserve(keys_.size());
  for (const std::size_t at : first_of_key_) {
    requests.push_back(transaction_.claim_request(context_.consumer, *part_[at]->message, part_[at]->hash.bytes()));
    requests.back().undecided = first_of_key_.size() > 1;
  }
  return requests;
}

BatchRun::End BatchRun::run_without_savepoints(OnFailure on_failure) {
  auto existing = transaction_.begin_and_claim_all(claim_requests());
  if (has_waited_too_long()) return End::run_again;
  std::size_t claims = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    keys_[i].existing = std::move(existing[i]);
    if (!keys_[i].existing) keys_[i].claim = claims++;
  }
  for (std::size_t i = 0; i < part_.size(); ++i) {
    if (!takes_over(i)) continue;
    most_items_ = i;
    return End::run_again;
  }
  // The claims of later messages are already inserted. No handler has run yet, so run again without these messages.
  const BatchItem* last = find_last_item(on_failure);
  if (last != nullptr && last != part_.back()) {
    last_item_ = last;
    return End::run_again;
  }
  if (!(runs_at_once() ? run_at_once() : run_each())) return End::run_again;
  set_results();
  commit();
  return End::committed;
}

/// Whether a claim has waited so long that its key can have been erased since the reading.
bool BatchRun::has_waited_too_long() {
  needs_reading_ = needs_reading_ || !erased_.is_current();
  return needs_reading_;
}

/// Whether the handler for all messages runs. If only one message is new, the user's handler for one message runs: its
/// error shows more.
bool BatchRun::runs_at_once() const {
  if (handlers_.at_once == nullptr || !handlers_.one_isolates) return handlers_.at_once != nullptr;
  return std::ranges::count_if(keys_, [](const Key& key) { return !key.existing; }) > 1;
}

/// Whether the client knows that the guard is gone. Throws if the reason is a lost connection, whose error the handler
/// has hidden. On a connection that is intact, the handler has ended the transaction: a statement that fails now must
/// not hide this.
bool BatchRun::is_guard_gone() {
  backend::Session& backend = session_.backend();
  if (backend.guard_likely_intact()) return false;
  if (!backend.intact()) (void)backend.verify_guard();  // it throws on a lost connection
  return true;
}

/// Runs the handler of each new message. Returns false if the part must run again.
bool BatchRun::run_each() {
  for (std::size_t i = 0; i < part_.size(); ++i) {
    BatchItem& item = *part_[i];
    Key& key = keys_[key_of_[i]];
    if (key.existing || key.staged) {
      if (!stage(item, key)) return false;
      continue;
    }
    transaction_.handler_begins(key.claim);
    Staged done = run_handler_of(item);
    if (is_guard_gone()) {
      failed_item_ = {&item, Failure(std::make_exception_ptr(transaction_lost(false)))};
      failed_item_->failure.rethrow();
    }
    key.staged = staged_.size();
    staged_.push_back(std::move(done));
  }
  return true;
}

/// Runs the handler once for all new messages. Returns false if the part must run again.
bool BatchRun::run_at_once() {
  std::vector<BatchItem*> items;
  std::vector<Delivery> deliveries;
  deliveries.reserve(part_.size());
  for (std::size_t i = 0; i < part_.size(); ++i) {
    BatchItem& item = *part_[i];
    Key& key = keys_[key_of_[i]];
    if (key.existing || key.staged) continue;
    key.staged = items.size();  // the results of the new messages come first in staged_
    transaction_.handler_begins(key.claim);
    items.push_back(&item);
    deliveries.emplace_back(*item.message, ++item.runs, context_.options.stop, item.index);
  }
  if (!items.empty()) {
    run_handler(context_, *handlers_.at_once, session_, deliveries, batch_);
    if (is_guard_gone()) throw transaction_lost(false);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    staged_.push_back({items[i], {.outcome = Outcome::consumed, .stored = deliveries[i].stored()}, true});
  }
  for (std::size_t i = 0; i < part_.size(); ++i) {
    Key& key = keys_[key_of_[i]];
    if (!key.existing && staged_[*key.staged].item == part_[i]) continue;
    if (!stage(*part_[i], key)) return false;
  }
  return true;
}

const BatchItem* BatchRun::find_last_item(OnFailure on_failure) const {
  if (on_failure == OnFailure::skip) return nullptr;
  for (std::size_t i = 0; i < part_.size(); ++i) {
    const auto& existing = keys_[key_of_[i]].existing;
    if (!existing) continue;
    const Claim claim = claim_for(*existing, part_[i]->hash.bytes());
    if (claim == Claim::in_progress) return part_[i];
    if (claim == Claim::parked && on_failure == OnFailure::stop_at_parked) return part_[i];
  }
  return nullptr;
}

/// Whether this item can claim a key whose existing row an earlier copy could not claim. The copies differ in their
/// content, so that only one of them is a conflict, or in `valid_for`.
bool BatchRun::takes_over(std::size_t at) const {
  const std::size_t key = key_of_[at];
  if (!keys_[key].existing || first_of_key_[key] == at) return false;
  const BatchItem& item = *part_[at];
  return transaction_.is_free(*keys_[key].existing,
                              transaction_.claim_request(context_.consumer, *item.message, item.hash.bytes()));
}

/// Stages the result of a message whose key is already decided: by an earlier delivery, or by a copy in this part.
/// Returns false if the part must run again.
bool BatchRun::stage(BatchItem& item, Key& key) {
  if (key.existing) return stage_existing(item, key);
  stage_copy(item, staged_[*key.staged]);
  return true;
}

bool BatchRun::stage_existing(BatchItem& item, Key& key) {
  backend::ClaimedRow row = *key.existing;
  if (recovery_.is_unconfirmed(item.message->business_key, row)) return false;
  recovery_.record_torn(item.message->business_key, row);
  Result result = result_for(row, item.hash.bytes());
  // An earlier run of this call committed the claim, and the reply was lost. The copies are duplicates.
  if (result.outcome == Outcome::already_consumed && recovery_.is_ours(row) && !key.staged) {
    result.outcome = Outcome::consumed;
    result.refused = item.refusal.has_value();
    key.staged = staged_.size();
  }
  const bool cacheable = context_.recent.enabled() && result.outcome == Outcome::already_consumed && !result.stored;
  staged_.push_back({&item, std::move(result)});
  if (cacheable) staged_.back().known_hash = std::move(row.content_hash);
  return true;
}

void BatchRun::stage_copy(BatchItem& item, const Staged& first) {
  const bool conflict = is_conflict(first.item->hash.bytes(), item.hash.bytes());
  Result result = conflict ? Result{.outcome = Outcome::conflict}
                           : Result{.outcome = Outcome::already_consumed, .stored = first.result.stored};
  staged_.push_back({&item, std::move(result)});
}

BatchRun::Staged BatchRun::run_handler_of(BatchItem& item) {
  Delivery delivery(*item.message, ++item.runs, context_.options.stop, item.index);
  run_handler(context_, handlers_.one, session_, delivery);
  return {&item, {.outcome = Outcome::consumed, .stored = delivery.stored()}, true};
}

/// Waits until the rows that this transaction has read are durable. A commit of our own would have the same effect. One
/// key is enough, because the wait covers everything that was read.
void BatchRun::wait_until_durable() {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (!keys_[i].existing || keys_[i].existing->state != RowState::consumed) continue;
    if (session_.backend().wait_until_durable(context_.consumer, part_[first_of_key_[i]]->message->business_key)) {
      return;
    }
  }
}

/// The commit writes the results of the handlers that ran without savepoints.
void BatchRun::set_results() {
  for (const Key& key : keys_) {
    if (!key.staged || key.existing) continue;
    const std::optional<std::string>& stored = staged_[*key.staged].result.stored;
    if (stored) transaction_.set_result(key.claim, *stored);
  }
}

void BatchRun::commit() {
  if (transaction_.claims() == 0) {
    transaction_.roll_back();
    wait_until_durable();
  } else {
    transaction_.commit();
  }
  if (transaction_.session_usable()) session_.mark_clean();
}

void BatchRun::record_conflicts() {
  for (Staged& each : staged_) {
    if (each.result.outcome != Outcome::conflict) continue;
    try {
      record_conflict(session_.backend(), context_.consumer, *each.item->message, each.item->hash.bytes(),
                      context_.options.max_conflicts);
    } catch (...) {
      each.result = {.outcome = Outcome::failed, .error = std::current_exception()};
      session_.discard();
    }
  }
}

void BatchRun::publish(RecentKeyCache& recent, std::uint64_t losses_before, std::uint64_t losses) {
  for (Staged& each : staged_) {
    const std::string& key = each.item->message->business_key;
    if (recent.enabled() && each.ours && !each.result.stored) {
      recent.remember(key, each.item->hash.bytes(), losses_before, losses);
    } else if (each.known_hash) {
      recent.remember(key, *each.known_hash, losses_before, losses);
    }
    each.item->result = std::move(each.result);
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
