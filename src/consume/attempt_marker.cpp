#include "consume/attempt_marker.hpp"

#include <chrono>
#include <utility>

#include "base/interruptible_sleep.hpp"
#include "consume/failure_record.hpp"
#include "pool/pool_state.hpp"
#include "pool/with_session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

AttemptMarker::~AttemptMarker() {
  if (begun_) remove_marker();
}

FailedMessageTable AttemptMarker::table(backend::Session& session) const {
  return {session, context_.consumer, message_};
}

std::optional<ProcessMarker> AttemptMarker::read(backend::Session& session) {
  FailedMessageRow row = table(session).find();
  attempts_ = row.attempts;
  if (row.has_crashes) suspect_ = true;
  return std::move(row.marker);
}

bool AttemptMarker::has_foreign_marker(backend::Session& session) {
  const auto marker = read(session);
  // A marker of this process shows no crash: another thread runs the attempt, or a call could not remove its marker.
  if (!marker || marker->process == AttemptRegistry::of_process().process().bytes()) return false;
  foreign_process_ = marker->process;
  return true;
}

/// Whether the found marker remains and its attempt was exclusive. With key_first, a live process removes its marker
/// with the next statement after it has released the key. So read the marker for up to a second.
bool AttemptMarker::is_of_crashed_attempt(backend::Session& session, CleanupOrder order) {
  constexpr std::chrono::milliseconds between{100};
  const int reads = order == CleanupOrder::marker_first ? 1 : 11;
  for (int i = 0; i < reads; ++i) {
    if (i > 0 && !sleep_for(between, context_.options.stop)) return false;
    const auto marker = read(session);
    if (!marker || marker->process != foreign_process_) return false;
    suspect_ = true;
    if (!marker->exclusive) return false;
  }
  return true;
}

bool AttemptMarker::counts_crash(backend::Session& session, CleanupOrder order) {
  if (!is_of_crashed_attempt(session, order)) return false;
  attempts_ = FailureRecord(session, context_.consumer).count_crash(message_);
  return true;
}

bool AttemptMarker::enter() {
  registration_.leave();
  const auto longest_wait = context_.source.pool()->options().acquire_timeout;
  registration_ = AttemptRegistry::of_process().enter(suspect_, longest_wait, context_.options.stop);
  return registration_.waited();
}

void AttemptMarker::begin(backend::Session& session) {
  begun_ = true;
  table(session).write_marker(AttemptRegistry::of_process().process(), registration_.exclusive());
}

std::string AttemptMarker::removal_sql(backend::Session& session) const {
  const Token& process = AttemptRegistry::of_process().process();
  return attempts_ == 0 ? table(session).delete_marker_sql(process) : table(session).clear_marker_sql(process);
}

void AttemptMarker::on_marker_removed() noexcept {
  begun_ = false;
  registration_.leave();
}

void AttemptMarker::remove_marker(backend::Session& session) {
  // Another process may have counted a failure since the row was read. Then the row must stay.
  if (session.change(removal_sql(session)) == 0) {
    session.change(table(session).clear_marker_sql(AttemptRegistry::of_process().process()));
  }
  on_marker_removed();
}

void AttemptMarker::remove_marker() noexcept {
  try {
    with_session(context_.source, {}, [&](backend::Session& session) { remove_marker(session); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the marker stays; the next attempt of this process replaces it
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
