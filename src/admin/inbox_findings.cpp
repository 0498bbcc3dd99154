#include "admin/inbox_findings.hpp"

#include <algorithm>
#include <exception>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/failure.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "base/utc_time.hpp"
#include "tables/pause_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

using backend::number_or_zero;

using namespace std::chrono_literals;
using backend::Row;

/// How long an expired lease may wait for the next delivery, which takes it over.
constexpr std::chrono::minutes time_to_take_over = 5min;

/// Rows that are older than this show that nobody purges.
constexpr std::chrono::days old_enough_to_purge{30};

std::string text_of(std::chrono::duration<double> time) {
  if (time >= std::chrono::days(2)) return fmt::format("{:.1f} days", time / std::chrono::days(1));
  if (time >= 2h) return fmt::format("{:.1f} hours", time / 1h);
  if (time >= 2min) return fmt::format("{:.1f} minutes", time / 1min);
  return fmt::format("{:.1f} seconds", time.count());
}

std::string subject_of(std::string_view consumer) { return fmt::format("consumer {}", consumer); }

class FindingReader {
 public:
  FindingReader(const backend::NativeConnection& sql, const backend::Dialect& dialect) : sql_(sql), dialect_(dialect) {}

  void unfinished() {
    const std::string expired = fmt::format("state = 'consuming' AND lease_owner IS NOT NULL AND lease_expires_at < {}",
                                            dialect_.before(time_to_take_over));
    for (const Row& row : backend::query(
             sql_,
             fmt::format("SELECT consumer, state, count(*), {}, sum(CASE WHEN {} THEN 1 ELSE 0 END), {} FROM {} WHERE "
                         "state IN ('consuming', 'parked', 'torn') AND (state <> 'torn' OR lease_expires_at IS NULL OR "
                         "lease_expires_at <= {}) GROUP BY consumer, state ORDER BY consumer, state {}",
                         dialect_.utc_text("min(consumed_at)"), expired,
                         dialect_.utc_text(fmt::format("min(CASE WHEN {} THEN lease_expires_at END)", expired)),
                         table(), dialect_.now(), backend::all_rows),
             6)) {
      const std::string consumer = row[0].value_or("");
      const std::string state = row[1].value_or("");
      if (state == "torn") {
        add(Severity::warning, subject_of(consumer),
            fmt::format("torn messages: {}, the first since {} UTC; a part of their effect can be there, and they do "
                        "not run again",
                        number_or_zero(row[2]), row[3].value_or("")),
            fmt::format("repair the data of each, then `txinbox forget --consumer {} BUSINESS_KEY` lets its next "
                        "delivery run. To list them: SELECT business_key FROM {} WHERE consumer = {} AND "
                        "state = 'torn'",
                        consumer, table(), dialect_.text(consumer)));
      } else if (state == "parked") {
        add(Severity::note, subject_of(consumer),
            fmt::format("parked messages: {}, the first since {} UTC", number_or_zero(row[2]), row[3].value_or("")),
            fmt::format("`txinbox failed list --consumer {} --state parked`, then retry or discard them", consumer));
      } else if (number_or_zero(row[4]) > 0) {
        add(Severity::warning, subject_of(consumer),
            fmt::format("expired leases that nobody has taken over: {}, the first at {} UTC", number_or_zero(row[4]),
                        row[5].value_or("")),
            fmt::format("have the messages delivered again: the next delivery takes the lease over. To list them: "
                        "SELECT business_key FROM {} WHERE consumer = {} AND {}",
                        table(), dialect_.text(consumer), expired));
      }
    }
  }

  void retention() {
    const Notes notes = read_notes(sql_, dialect_);
    const auto for_all = notes_of("", notes).retention;
    for (const auto& [consumer, note] : notes) {
      const auto kept = shorter(note.retention, for_all);
      if (consumer.empty() || !note.oldest_duplicate || !kept || *kept >= 2 * *note.oldest_duplicate) continue;
      add(Severity::warning, subject_of(consumer),
          fmt::format("a duplicate came {} after its original{}, and the last purge kept rows for {}",
                      text_of(*note.oldest_duplicate),
                      note.oldest_duplicate_at ? fmt::format(" (at {} UTC)", utc_text(*note.oldest_duplicate_at)) : "",
                      text_of(*kept)),
          fmt::format("purge with --older-than {}h or more: a duplicate whose row is gone runs again",
                      2 * *note.oldest_duplicate / 1h + 1));
    }
    const bool purged = std::ranges::any_of(notes, [](const auto& note) { return note.second.purged_at.has_value(); });
    if (!purged) never_purged();
  }

  void pauses() {
    const std::string paused = dialect_.table(backend::pause_table);
    for (const Row& row :
         backend::query(sql_,
                        fmt::format("SELECT consumer, {}, actor, reason FROM {} WHERE {} ORDER BY consumer {}",
                                    dialect_.utc_text("paused_at"), paused, is_paused(dialect_), backend::all_rows),
                        4)) {
      const std::string consumer = row[0].value_or("");
      add(Severity::note, subject_of(consumer),
          fmt::format("paused since {} UTC by {}: {}", row[1].value_or(""), row[2].value_or(""), row[3].value_or("")),
          fmt::format("`txinbox resume --consumer {}`, when it may run again", consumer));
    }
  }

  void cannot_read_pauses() {
    add(Severity::warning, "pauses",
        "this user cannot read txinbox_pause; if a service has this user, its `run` does not obey `txinbox pause`",
        "grant it SELECT on txinbox_pause (docs/operations/migrations.md)");
  }

  /// The user of a service without an outbox may lack the right to read these tables.
  void outbox(const std::optional<backend::LogReader>& log_reader) {
    constexpr std::chrono::minutes long_time{5};
    const std::string messages = dialect_.table(backend::outbox_message_table);
    for (const Row& row : backend::query(
             sql_,
             fmt::format("SELECT {}, {}, (SELECT count(*) FROM {} WHERE lease_expires_at > {}) FROM {} WHERE parked_at "
                         "IS NULL ORDER BY seq LIMIT 1",
                         dialect_.utc_text("created_at"), dialect_.milliseconds_since("created_at"),
                         dialect_.table(backend::outbox_relay_table), dialect_.now(), messages),
             3)) {
      if (std::chrono::milliseconds(number_or_zero(row[1])) >= long_time)
        old_message(row[0].value_or(""), number_or_zero(row[2]) > 0, log_reader);
    }
    const auto parked = number_or_zero(
        backend::query_text(sql_, fmt::format("SELECT count(*) FROM {} WHERE parked_at IS NOT NULL", messages)));
    if (parked > 0) {
      add(Severity::note, "outbox", fmt::format("parked messages: {}", parked),
          "`txinbox outbox list --state parked`, then retry or discard them");
    }
  }

  void cannot_read_outbox() {
    add(Severity::note, "outbox", "this user cannot read its tables, so that it was not examined",
        "none for a service without an outbox; docs/operations/migrations.md lists the privileges");
  }

  std::vector<Finding> take() { return std::move(findings_); }

 private:
  void old_message(const std::string& since, bool relay_runs, const std::optional<backend::LogReader>& log_reader) {
    const std::string oldest = fmt::format("the oldest message that is not published was added at {} UTC, and ", since);
    if (relay_runs) {
      add(Severity::warning, "outbox", oldest + "a relay runs",
          "`txinbox outbox list` says why; if nothing has failed, the relay is too slow");
    } else if (!log_reader) {
      add(Severity::warning, "outbox", oldest + "no relay runs",
          "start an OutboxRelay in the service, or `txinbox relay`; if Debezium publishes, remove old rows");
    } else if (log_reader->connected) {
      add(Severity::note, "outbox",
          fmt::format("the oldest row was added at {} UTC; no relay runs, but {} reads the changes", since,
                      log_reader->name),
          fmt::format(
              "if this is Debezium, it publishes the messages: remove old rows, by created_at, from {}; if it is "
              "not, start an OutboxRelay in the service, or `txinbox relay`",
              dialect_.table(backend::outbox_message_table)));
    } else {
      add(Severity::warning, "outbox", fmt::format("{}no relay runs, and nobody reads {}", oldest, log_reader->name),
          "if Debezium publishes, start its connector: until then the server keeps its log; otherwise start an "
          "OutboxRelay in the service, or `txinbox relay`");
    }
  }

  void never_purged() {
    const std::string oldest = backend::query_text(
        sql_, fmt::format("SELECT {} FROM {} WHERE consumed_at < {}", dialect_.utc_text("min(consumed_at)"), table(),
                          dialect_.before(old_enough_to_purge)));
    if (oldest.empty()) return;
    add(Severity::note, "retention", fmt::format("the oldest row is of {} UTC, and nothing was ever purged", oldest),
        "`txinbox purge --older-than …` now and then, with more than the broker's longest redelivery, or a Purger in "
        "the service");
  }

  std::string table() const { return dialect_.table(backend::consumed_message_table); }

  void add(Severity severity, std::string subject, std::string found, std::string remedy) {
    findings_.push_back({severity, std::move(subject), std::move(found), std::move(remedy)});
  }

  const backend::NativeConnection& sql_;
  const backend::Dialect& dialect_;
  std::vector<Finding> findings_;
};

}  // namespace

Notes read_notes(const backend::NativeConnection& sql, const backend::Dialect& dialect) {
  Notes notes;
  for (const Row& row :
       backend::query(sql,
                      fmt::format("SELECT consumer, duplicates, oldest_duplicate, {}, retention, purged, {} FROM {} {}",
                                  dialect.utc_text("oldest_duplicate_at"), dialect.utc_text("purged_at"),
                                  dialect.table(backend::consumer_table), backend::all_rows),
                      7)) {
    ConsumerNotes& note = notes[row[0].value_or("")];
    note.duplicates = number_or_zero(row[1]);
    if (row[2]) note.oldest_duplicate = std::chrono::milliseconds(number_or_zero(row[2]));
    note.oldest_duplicate_at = backend::time_in(row[3]);
    if (row[4]) note.retention = std::chrono::seconds(number_or_zero(row[4]));
    note.purged = number_or_zero(row[5]);
    note.purged_at = backend::time_in(row[6]);
  }
  return notes;
}

ConsumerNotes notes_of(const std::string& consumer, const Notes& notes) {
  const auto found = notes.find(consumer);
  return found == notes.end() ? ConsumerNotes() : found->second;
}

std::optional<std::chrono::seconds> shorter(std::optional<std::chrono::seconds> one,
                                            std::optional<std::chrono::seconds> other) {
  if (!one || !other) return one ? one : other;
  return std::min(one, other);
}

std::vector<Finding> inbox_findings(const backend::NativeConnection& sql, const backend::Dialect& dialect,
                                    OptionalTables has, const std::optional<backend::LogReader>& log_reader) {
  FindingReader reader(sql, dialect);
  reader.unfinished();
  reader.retention();
  const auto read_if_allowed = [&](const auto& read, const auto& cannot_read) {
    try {
      read();
    } catch (const DatabaseError&) {
      const Failure failure = Failure::current();
      if (failure.is_fatal_to_session() || failure.is_transient() || failure.is_of_environment()) throw;
      cannot_read();
    }
  };
  if (has.operations) {
    read_if_allowed([&] { reader.pauses(); }, [&] { reader.cannot_read_pauses(); });
  }
  if (has.outbox) {
    read_if_allowed([&] { reader.outbox(log_reader); }, [&] { reader.cannot_read_outbox(); });
  }
  return reader.take();
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
