#include "lease/database_lease_store.hpp"

#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "base/process.hpp"
#include "base/reentrancy_check.hpp"
#include "consume/attempt_marker.hpp"
#include "consume/failure_record.hpp"
#include "lease/active_lease.hpp"
#include "lease/run_with_retries.hpp"
#include "pool/with_session.hpp"
#include "tables/conflicting_message_table.hpp"
#include "tables/lease_table.hpp"
#include "types/handler_error.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using std::chrono::milliseconds;
using Clock = LeaseTime::Clock;

namespace {

class DatabaseLeaseCall final : public LeaseCall {
 public:
  DatabaseLeaseCall(ConsumerContext& context, milliseconds lease, std::string_view owner_name, const Message& message,
                    const ContentHash& hash, const std::function<void(Event)>& notify)
      : context_(context),
        lease_(lease),
        message_(message),
        hash_(hash),
        notify_(notify),
        owner_{.name = owner_name},
        attempt_(context, message) {}

  std::variant<Grant, Result> claim() override;
  std::optional<Clock::time_point> renew(std::int64_t fence, const std::stop_token& stop) override;
  bool start_attempt(ActiveLease&) override;
  bool complete(std::int64_t fence, const std::optional<std::string>& result) override;
  bool give_back(std::int64_t fence, const Failure&, Counting) noexcept override;

 private:
  using Answer = std::variant<Grant, Result>;

  LeaseTable table(backend::Session& session) const { return {session, context_.consumer, message_}; }
  Answer claim(backend::Session&);
  std::optional<Answer> try_claim(backend::Session&);
  std::optional<Result> find_erased_after(backend::Session&, std::int64_t fence);
  Result result_of(backend::Session&, backend::ClaimedRow&);

  /// Runs a step on a borrowed session, again after transient errors. `stop` ends the wait for a connection.
  template <class Step>
  auto with_retries(const std::stop_token& stop, const Step& step);

  ConsumerContext& context_;
  const milliseconds lease_;
  const Message& message_;
  const ContentHash& hash_;
  const std::function<void(Event)>& notify_;
  const LeaseOwner owner_;
  AttemptMarker attempt_;
  ErasedKeys::Reading erased_;
  bool insert_tried_ = false;  ///< The row probably exists: read it first.
  bool taken_over_ = false;
};

template <class Step>
auto DatabaseLeaseCall::with_retries(const std::stop_token& stop, const Step& step) {
  return run_with_retries(
      context_, notify_,
      [&] {
        const ReentrancyCheck not_nested(context_.source.identity());
        return with_session(context_.source, stop, step);
      },
      [&](const Failure& failure) { return context_.can_go_on_after(failure); });
}

std::variant<Grant, Result> DatabaseLeaseCall::claim() {
  return with_retries(context_.options.stop, [&](backend::Session& session) { return claim(session); });
}

DatabaseLeaseCall::Answer DatabaseLeaseCall::claim(backend::Session& session) {
  session.refuse_other_inbox();
  erased_ = context_.erased.read(session, context_.consumer);
  if (auto erased = erased_->find(context_.consumer, message_)) return std::move(*erased);
  // Another worker can change the row between two statements. Then try again, but not forever.
  constexpr int tries = 20;
  for (int i = 0; i < tries; ++i) {
    auto answer = try_claim(session);
    if (!answer) continue;
    if (auto* grant = std::get_if<Grant>(&*answer)) grant->taken_over = taken_over_;
    return std::move(*answer);
  }
  throw Error(ErrorCode::unknown_state,
              "the row of this key changed many times during the claim; look for a purge or a trigger that deletes it");
}

/// Claims the key once. Returns none if the row must be read again. If the reply to a claim was lost, the row shows
/// whether this call has the lease.
std::optional<DatabaseLeaseCall::Answer> DatabaseLeaseCall::try_claim(backend::Session& session) {
  const auto sent = Clock::now();
  std::optional<backend::ClaimedRow> row;
  if (insert_tried_ || session.reads_before_insert()) row = table(session).find();
  if (!row) {
    insert_tried_ = true;
    const auto fence = table(session).insert(owner_, hash_.bytes(), lease_);
    session.record_claim_result(!fence);
    if (!fence) return std::nullopt;
    if (auto erased = find_erased_after(session, *fence)) return std::move(*erased);
    return Grant{*fence, sent + lease_};
  }
  const bool ours = row->token == owner_.token.bytes();
  const bool expired = row->state == RowState::consumed && !ours && message_.valid_for > milliseconds::zero() &&
                       row->age >= message_.valid_for;
  if (row->state != RowState::consuming && !expired) return result_of(session, *row);
  if (!expired) {
    const auto remaining = row->lease_remaining.value_or(milliseconds(1));
    if (ours && remaining > milliseconds::zero()) return Grant{row->lease_fence, sent + remaining};
    if (remaining > milliseconds::zero() || is_conflict(row->content_hash, hash_.bytes())) {
      return result_of(session, *row);
    }
  }
  const auto asked = Clock::now();
  const auto fence = table(session).take_over(owner_, hash_.bytes(), lease_, *row);
  if (!fence) return std::nullopt;
  taken_over_ = taken_over_ || (!ours && !expired);
  return Grant{*fence, asked + lease_};
}

/// The insert has waited so long that the key can have been erased. The inserted row is then removed, or discarded if
/// the service may not delete it. Returns the result of an erased message; none if it was not erased.
std::optional<Result> DatabaseLeaseCall::find_erased_after(backend::Session& session, std::int64_t fence) {
  if (erased_->is_current()) return std::nullopt;
  erased_ = context_.erased.read(session, context_.consumer);
  auto erased = erased_->find(context_.consumer, message_);
  if (!erased) return std::nullopt;
  try {
    table(session).remove(owner_, fence);
  } catch (...) {
    if (Failure::current().is_transient()) throw;
    table(session).discard(owner_, fence);
  }
  return erased;
}

Result DatabaseLeaseCall::result_of(backend::Session& session, backend::ClaimedRow& row) {
  Result result = result_for(row, hash_.bytes());
  if (result.outcome == Outcome::conflict) {
    record_conflict(session, context_.consumer, message_, hash_.bytes(), context_.options.max_conflicts);
  } else if (result.outcome == Outcome::already_consumed) {
    session.wait_until_durable(context_.consumer, message_.business_key);
  }
  return result;
}

std::optional<Clock::time_point> DatabaseLeaseCall::renew(std::int64_t fence, const std::stop_token& stop) {
  Clock::time_point sent;
  const bool renewed = with_session(context_.source, stop, [&](backend::Session& session) {
    // The wait for a connection was too long. A renewal now would only keep other workers from the key.
    if (stop.stop_requested()) throw Error(ErrorCode::stopped, "the lease is over, or its handler has ended");
    sent = Clock::now();
    return table(session).renew(owner_, fence, lease_);
  });
  if (!renewed) return std::nullopt;
  return sent + lease_;
}

/// Writes the marker of the attempt. This call has the lease. So a marker of another attempt belongs to an attempt that
/// crashed or that outlived its lease.
bool DatabaseLeaseCall::start_attempt(ActiveLease& lease) {
  const bool crashed = with_retries(context_.options.stop, [&](backend::Session& session) {
    return attempt_.has_foreign_marker(session) &&
           attempt_.counts_crash(session, AttemptMarker::CleanupOrder::marker_first);
  });
  if (crashed && context_.exceeds_max_attempts(attempt_.attempts())) {
    return !with_retries(context_.options.stop,
                         [&](backend::Session& session) { return table(session).park(owner_, lease.fence()); });
  }
  if (attempt_.enter()) lease.renew();
  with_retries(context_.options.stop, [&](backend::Session& session) {
    attempt_.begin(session);
    return true;
  });
  return true;
}

/// The reply to an earlier try may have been lost: if the row is consumed and has our token, this call has completed
/// it.
bool DatabaseLeaseCall::complete(std::int64_t fence, const std::optional<std::string>& result) {
  return with_retries({}, [&](backend::Session& session) {
    if (table(session).complete(owner_, fence, result)) return true;
    const auto row = table(session).find();
    const bool ours =
        row && row->state == RowState::consumed && row->token == owner_.token.bytes() && row->lease_fence == fence;
    return ours && session.wait_until_durable(context_.consumer, message_.business_key);
  });
}

/// Counts the failure and removes the marker before it releases the lease, because the next delivery may come at once.
bool DatabaseLeaseCall::give_back(std::int64_t fence, const Failure& failure, Counting counting) noexcept {
  const bool counts = context_.counts(failure, counting);
  if (counts) set_count(failure.error(), FailureCount::lost);
  bool parked = false;
  try {
    SessionHandle session = context_.source.borrow({});
    try {
      const int attempts = counts ? FailureRecord(session.backend(), context_.consumer)
                                        .count(message_, failure.error(), context_.options.keep_error_text)
                                  : 0;
      if (counts) set_count(failure.error(), FailureCount::stored);
      if (counts && attempt_.begun()) attempt_.on_marker_removed();
      if (attempt_.begun()) attempt_.remove_marker(session.backend());
      const bool park = counts && (failure.is(ErrorCode::rejected) || context_.exceeds_max_attempts(attempts));
      parked = park && table(session.backend()).park(owner_, fence);
    } catch (...) {
      if (Failure::current().is_fatal_to_session()) throw;
    }
    if (!parked) table(session.backend()).release(owner_, fence);
    session.mark_clean();
  } catch (...) {  // NOLINT(bugprone-empty-catch): documented
  }
  return parked;
}

}  // namespace

DatabaseLeaseStore::DatabaseLeaseStore(SessionProvider source, std::string consumer, std::chrono::milliseconds length,
                                       ConsumerOptions options)
    : context_(std::move(source), std::move(consumer), std::move(options)),
      lease_(length),
      owner_name_(host_and_process()) {}

std::unique_ptr<LeaseCall> DatabaseLeaseStore::begin(const Message& message, const ContentHash& hash,
                                                     const std::function<void(Event)>& notify) {
  return std::make_unique<DatabaseLeaseCall>(context_, lease_, owner_name_, message, hash, notify);
}

void DatabaseLeaseStore::count_duplicate(const Result& result) noexcept { context_.duplicates.count({&result, 1}); }

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
