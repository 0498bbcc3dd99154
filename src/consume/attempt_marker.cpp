#include "consume/attempt_marker.hpp"

#include <chrono>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "base/hex.hpp"
#include "base/interruptible_sleep.hpp"
#include "pool/pool_state.hpp"
#include "pool/with_session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

AttemptMarker::~AttemptMarker() {
  if (begun_) strike_out();
}

std::optional<AttemptMarker::Mark> AttemptMarker::read(backend::Session& session) {
  const backend::Dialect& sql = session.dialect();
  const auto rows = session.read(
      fmt::format("SELECT attempts, {}, running_alone, deaths FROM {} WHERE {}", sql.hex_token("running_token"),
                  sql.table(backend::failed_message_table), sql.is_key(context_.consumer, message_.business_key)),
      4);
  attempts_ = rows.empty() ? 0 : static_cast<int>(backend::number_in(rows[0][0].value_or("")));
  if (!rows.empty() && rows[0][3] != "0") suspect_ = true;
  if (rows.empty() || !rows[0][1] || rows[0][1]->empty()) return std::nullopt;
  return Mark{from_hex(*rows[0][1]), rows[0][2] == "1"};
}

bool AttemptMarker::has_foreign_marker(backend::Session& session) {
  const auto mark = read(session);
  // One of this process is that of another thread, or of a call that could not remove it: nobody died.
  if (!mark || mark->process == AttemptRegistry::of_process().process().bytes()) return false;
  found_ = mark->process;
  return true;
}

/// Whether the mark of an exclusive attempt stays there. A live process that lets go of the key first removes its
/// mark with the next statement on the same connection: it is given the time for that.
bool AttemptMarker::stays(backend::Session& session, Order order) {
  constexpr std::chrono::milliseconds between{100};
  const int looks = order == Order::mark_first ? 1 : 11;
  for (int i = 0; i < looks; ++i) {
    if (i > 0 && !sleep_for(between, context_.options.stop)) return false;
    const auto mark = read(session);
    if (!mark || mark->process != found_) return false;
    suspect_ = true;
    if (!mark->exclusive) return false;
  }
  return true;
}

bool AttemptMarker::counts_crash(backend::Session& session, Order order) {
  if (!stays(session, order)) return false;
  attempts_ = FailureRecord(session, context_.consumer).count_death(message_);
  return true;
}

bool AttemptMarker::enter() {
  registration_.leave();
  const auto longest_wait = context_.source.pool()->options().acquire_timeout;
  registration_ = AttemptRegistry::of_process().enter(suspect_, longest_wait, context_.options.stop);
  return registration_.waited();
}

void AttemptMarker::begin(backend::Session& session) {
  const backend::Dialect& sql = session.dialect();
  const std::string table = sql.table(backend::failed_message_table);
  const std::string process = sql.token(AttemptRegistry::of_process().process());
  const int alone = registration_.exclusive() ? 1 : 0;
  begun_ = true;
  backend::change_or_insert(
      session,
      fmt::format("UPDATE {} SET running_token = {}, running_since = {}, running_alone = {} WHERE {}", table, process,
                  sql.now(), alone, sql.is_key(context_.consumer, message_.business_key)),
      fmt::format("INSERT INTO {} (consumer, business_key, message_id, attempts, deaths, running_token, running_since, "
                  "running_alone) VALUES ({}, {}, {}, 0, 0, {}, {}, {})",
                  table, sql.text(context_.consumer), sql.text(message_.business_key),
                  sql.text_or_null(message_.message_id), process, sql.now(), alone));
}

std::string AttemptMarker::is_our_mark(backend::Session& session) const {
  const backend::Dialect& sql = session.dialect();
  return fmt::format("{} AND running_token = {}", sql.is_key(context_.consumer, message_.business_key),
                     sql.token(AttemptRegistry::of_process().process()));
}

/// A row that counts failures stays.
std::string AttemptMarker::end_sql(backend::Session& session) const {
  if (attempts_ != 0) return clear_sql(session);
  return fmt::format("DELETE FROM {} WHERE {} AND attempts = 0", session.dialect().table(backend::failed_message_table),
                     is_our_mark(session));
}

std::string AttemptMarker::clear_sql(backend::Session& session) const {
  return fmt::format("UPDATE {} SET running_token = NULL, running_since = NULL, running_alone = NULL WHERE {}",
                     session.dialect().table(backend::failed_message_table), is_our_mark(session));
}

void AttemptMarker::ended() noexcept {
  begun_ = false;
  registration_.leave();
}

void AttemptMarker::strike_out(backend::Session& session) {
  // Another process may have counted a failure since the row was read.
  if (session.change(end_sql(session)) == 0) session.change(clear_sql(session));
  ended();
}

void AttemptMarker::strike_out() noexcept {
  try {
    with_session(context_.source, {}, [&](backend::Session& session) { strike_out(session); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the mark stays; the next attempt of this process replaces it
  }
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
