#include "started_attempt.hpp"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "backend/table_check.hpp"
#include "backend/upsert.hpp"
#include "hex.hpp"
#include "on_session.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {
namespace {

void note_company(const std::shared_ptr<PoolState>& pool, std::string_view consumer, std::string_view business_key) {
  SessionSource source(pool);
  on_session(source, {}, [&](backend::Session& session) {
    const backend::Dialect& sql = session.dialect();
    session.change(fmt::format("UPDATE {} SET running_alone = 0 WHERE {} AND running_token = {}",
                               sql.table(backend::failed_message_table), sql.is_key(consumer, business_key),
                               sql.token(InFlight::of_process().process())));
  });
}

}  // namespace

/// An attempt that ended without being counted: by a transient error, or a stop.
StartedAttempt::~StartedAttempt() {
  if (!begun_) return;
  try {
    on_session(context_.source, {}, [&](backend::Session& session) { session.change(end_sql(session)); });
  } catch (...) {  // NOLINT(bugprone-empty-catch): the mark stays; the next attempt of this process replaces it
  }
}

std::optional<StartedAttempt::Mark> StartedAttempt::read(backend::Session& session) {
  const backend::Dialect& sql = session.dialect();
  const auto rows = session.read(
      fmt::format("SELECT attempts, {}, running_alone FROM {} WHERE {}", sql.hex_token("running_token"),
                  sql.table(backend::failed_message_table), sql.is_key(context_.consumer, message_.business_key)),
      3);
  attempts_ = rows.empty() ? 0 : static_cast<int>(backend::number_in(rows[0][0].value_or("")));
  if (rows.empty() || !rows[0][1] || rows[0][1]->empty()) return std::nullopt;
  return Mark{from_hex(*rows[0][1]), rows[0][2] == "1"};
}

bool StartedAttempt::finds_mark(backend::Session& session) {
  const auto mark = read(session);
  // One of this process is that of another thread, or of a call that could not remove it: nobody died.
  if (!mark || mark->process == InFlight::of_process().process().bytes()) return false;
  found_ = mark->process;
  return true;
}

/// A live process lets go of the key by its rollback, and removes its mark right after that: it is given the
/// time, which only costs where a process has died.
StartedAttempt::Trace StartedAttempt::judge(backend::Session& session) {
  constexpr int looks = 6;
  constexpr std::chrono::milliseconds between{100};
  std::optional<Mark> mark;
  for (int i = 0; i < looks; ++i) {
    if (i > 0) std::this_thread::sleep_for(between);
    mark = read(session);
    if (!mark || mark->process != found_) return Trace::none;
  }
  if (!mark->alone) return Trace::suspect;
  attempts_ = FailureRecord(session, context_.consumer).count_death(message_);
  return Trace::died;
}

void StartedAttempt::enter(bool exclusive) {
  place_.leave();
  // By value: another thread may call it when this attempt, or its consumer, is gone.
  const auto on_company = [pool = context_.source.pool(), consumer = context_.consumer, key = message_.business_key] {
    note_company(pool, consumer, key);
  };
  place_ = InFlight::of_process().enter(exclusive, on_company, context_.options.stop);
}

void StartedAttempt::begin(backend::Session& session) {
  const backend::Dialect& sql = session.dialect();
  const std::string table = sql.table(backend::failed_message_table);
  const std::string process = sql.token(InFlight::of_process().process());
  const int alone = place_.alone() ? 1 : 0;
  begun_ = true;
  backend::change_or_insert(
      session,
      fmt::format("UPDATE {} SET running_token = {}, running_since = {}, running_alone = {} WHERE {}", table, process,
                  sql.now(), alone, sql.is_key(context_.consumer, message_.business_key)),
      fmt::format("INSERT INTO {} (consumer, business_key, message_id, attempts, deaths, running_token, running_since, "
                  "running_alone) VALUES ({}, {}, {}, 0, 0, {}, {}, {})",
                  table, sql.text(context_.consumer), sql.text(message_.business_key),
                  sql.text_or_null(message_.message_id), process, sql.now(), alone));
  place_.marked();
}

/// A row that counts failures stays.
std::string StartedAttempt::end_sql(backend::Session& session) const {
  const backend::Dialect& sql = session.dialect();
  const std::string where =
      fmt::format(" WHERE {} AND running_token = {}", sql.is_key(context_.consumer, message_.business_key),
                  sql.token(InFlight::of_process().process()));
  const std::string table = sql.table(backend::failed_message_table);
  if (attempts_ == 0) return fmt::format("DELETE FROM {}{} AND attempts = 0", table, where);
  return fmt::format("UPDATE {} SET running_token = NULL, running_since = NULL, running_alone = NULL{}", table, where);
}

void StartedAttempt::ended() noexcept {
  begun_ = false;
  place_.leave();
}

}  // namespace txinbox::inline TXINBOX_ABI::detail
