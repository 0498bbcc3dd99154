#include "consume/consumer_context.hpp"

#include <algorithm>
#include <utility>

#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "consume/failure_record.hpp"
#include "pool/with_session.hpp"
#include "tables/lease_table.hpp"
#include "transaction/claim.hpp"
#include "types/handler_error.hpp"
#include "types/row_state.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

ConsumerContext::ConsumerContext(SessionProvider source_, std::string consumer_, ConsumerOptions options_)
    : ConsumerPolicy(std::move(consumer_), std::move(options_)),
      source(std::move(source_)),
      recent(options.recent_keys),
      duplicates(source, consumer) {
  source.use_for_claims();
  if (options.count_starts && !source.reconnects()) {
    throw Error(ErrorCode::invalid_argument,
                "ConsumerOptions::count_starts needs a pool: it commits its marker in a transaction of its own");
  }
  if (recent.enabled() && !source.reconnects()) {
    throw Error(ErrorCode::invalid_argument,
                "ConsumerOptions::recent_keys needs a pool: with a session of your own, txinbox cannot notice that its "
                "connection was lost");
  }
}

bool ConsumerContext::is_parked(const Message& message) {
  return with_session(source, options.stop, [&](backend::Session& session) {
    const auto row = LeaseTable(session, consumer, message).find();
    return row && (row->state == RowState::parked || row->state == RowState::torn);
  });
}

bool ConsumerContext::can_go_on_after(const Failure& failure) const noexcept {
  return source.reconnects() || !failure.is_fatal_to_session();
}

void ConsumerContext::resolve_backlog() noexcept {
  try {
    SessionHandle session = source.borrow(options.stop);
    backlog.resolve(session.backend());
  } catch (...) {  // NOLINT(bugprone-empty-catch): see the header
  }
  notify_backlog();
}

void ConsumerContext::notify_backlog() noexcept {
  for (const std::string& key : backlog.take_torn()) notify({.type = EventType::torn, .business_key = key});
}

bool ConsumerContext::record_failure(const Message& message, const Failure& failure, Counting counting,
                                     bool& parked) noexcept {
  if (!counts(failure, counting)) return false;
  set_count(failure.error(), FailureCount::lost);
  try {
    with_session(source, {}, [&](backend::Session& session) {
      const FailureRecord record(session, consumer);
      const int attempts = record.count(message, failure.error(), options.keep_error_text);
      parked = failure.is(ErrorCode::rejected) ? record.park(message) : park_if_exhausted(session, message, attempts);
    });
    set_count(failure.error(), FailureCount::stored);
    return true;
  } catch (...) {
    return false;
  }
}

bool ConsumerContext::park_if_exhausted(backend::Session& session, const Message& message, int attempts) const {
  return exceeds_max_attempts(attempts) && FailureRecord(session, consumer).park(message);
}

Result result_for(backend::ClaimedRow& row, std::string_view content_hash) {
  const Claim claim = claim_for(row, content_hash);
  // A stored result belongs to its own content, so a conflict does not get it.
  if (claim == Claim::conflict) return {.outcome = Outcome::conflict};
  Result result{.outcome = outcome_for(claim)};
  if (claim == Claim::already_consumed) {
    result.stored = std::move(row.result);
    result.age = row.age;
  }
  if (claim == Claim::in_progress && !row.is_undecided()) {  // an undecided claim is usually decided at once
    result.retry_after =
        std::max(row.lease_remaining.value_or(std::chrono::milliseconds(0)), std::chrono::milliseconds(0));
  }
  return result;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
