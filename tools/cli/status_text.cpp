#include "cli/status_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/age.hpp"
#include "console/duration.hpp"
#include "console/json_output.hpp"
#include "console/progress.hpp"
#include "console/table.hpp"
#include "console/utf8.hpp"

namespace txinbox::cli {
namespace {

using Rows = TableRows;

std::string number(std::int64_t n) { return grouped(static_cast<unsigned long long>(std::max<std::int64_t>(n, 0))); }

std::string rate(double per_second) {
  return per_second < 99.95 ? fmt::format("{:.1f}", per_second) : number(std::llround(per_second));
}

std::optional<double> rate_of(const std::optional<Rates>& rates, const std::string& consumer) {
  if (!rates) return std::nullopt;
  const auto found = rates->find(consumer);
  return found == rates->end() ? std::nullopt : std::optional(found->second);
}

double in_last_minute(const ConsumerStatus& consumer) { return static_cast<double>(consumer.last_minute) / 60; }

template <typename Duration>
std::string time_or_none(const std::optional<Duration>& time) {
  return time ? format_duration(*time) : "-";
}

std::string counts(const InboxStatus& status, const std::optional<Rates>& now, std::size_t columns) {
  Rows rows{{"CONSUMER", "CONSUMED", "A SECOND", "NOW", "DUPLICATES", "CONFLICTS", "FAILED", "PARKED", "DISCARDED",
             "LEASES", "EXPIRED"}};
  for (const auto& c : status.consumers) {
    const auto rate_now = rate_of(now, c.consumer);
    rows.push_back({c.consumer, number(c.consumed), rate(in_last_minute(c)), rate_now ? rate(*rate_now) : "-",
                    number(c.duplicates), number(c.conflicts), number(c.failed), number(c.parked), number(c.discarded),
                    number(c.leases_held), number(c.expired_leases)});
  }
  if (!now) {
    for (auto& row : rows) row.erase(row.begin() + 3);
  }
  return format_table(rows, {false, true, true, true, true, true, true, true, true, true, true},
                      {.columns = columns, .how = Narrow::fold});
}

std::string times(const InboxStatus& status, std::size_t columns) {
  Rows rows{{"CONSUMER", "OLDEST (UTC)", "NEWEST (UTC)", "DUPLICATE AGE", "RETENTION", "TO PURGE", "PURGED (UTC)"}};
  for (const auto& c : status.consumers) {
    rows.push_back({c.consumer, time_to_the_second(c.oldest), time_to_the_second(c.newest),
                    time_or_none(c.oldest_duplicate), time_or_none(c.retention), number(c.purge_backlog),
                    time_to_the_second(c.purged_at)});
  }
  return format_table(rows, {false, false, false, true, true, true}, {.columns = columns, .how = Narrow::fold});
}

Json as_json(const ConsumerStatus& c) {
  Json json{{"consumer", c.consumer},
            {"consumed", c.consumed},
            {"consuming", c.consuming},
            {"parked", c.parked},
            {"oldest", time_text(c.oldest)},
            {"newest", time_text(c.newest)},
            {"discarded", c.discarded},
            {"failed", c.failed},
            {"conflicts", c.conflicts},
            {"duplicates", c.duplicates},
            {"leases_held", c.leases_held},
            {"expired_leases", c.expired_leases},
            {"last_minute", c.last_minute},
            {"oldest_duplicate_ms", nullptr},
            {"oldest_duplicate_at", time_text(c.oldest_duplicate_at)},
            {"retention_s", nullptr},
            {"purge_backlog", c.purge_backlog},
            {"purged_at", time_text(c.purged_at)},
            {"purged", c.purged}};
  if (c.oldest_duplicate) json.set("oldest_duplicate_ms", c.oldest_duplicate->count());
  if (c.retention) json.set("retention_s", c.retention->count());
  return json;
}

Json as_json(const Pauses& pauses) {
  auto list = Json::array();
  for (const ConsumerPause& each : pauses) {
    list.append({{"consumer", each.consumer},
                 {"paused_at", time_text(each.paused_at)},
                 {"resumes_at", time_text(each.resumes_at)},
                 {"reason", each.reason},
                 {"by", each.actor}});
  }
  return list;
}

std::string line_of(const ConsumerPause& pause) {
  return fmt::format("paused: {} since {} (UTC) until {} by {}: {}", printable(pause.consumer),
                     time_to_the_second(pause.paused_at),
                     pause.resumes_at ? time_to_the_second(pause.resumes_at) + " (UTC)" : "txinbox resume",
                     printable(pause.actor), printable(pause.reason));
}

/// The consumers that consume the most now, in the order of `status`.
std::vector<ConsumerStatus> most_active(const InboxStatus& status, const std::optional<Rates>& now,
                                        std::size_t how_many) {
  std::vector<const ConsumerStatus*> all;
  all.reserve(status.consumers.size());
  for (const auto& each : status.consumers) all.push_back(&each);
  const auto activity = [&now](const ConsumerStatus* each) {
    return std::pair(rate_of(now, each->consumer).value_or(0), each->last_minute);
  };
  std::ranges::stable_sort(all, std::greater(), activity);
  all.resize(std::min(how_many, all.size()));
  std::ranges::sort(all);
  std::vector<ConsumerStatus> some;
  some.reserve(all.size());
  for (const ConsumerStatus* each : all) some.push_back(*each);
  return some;
}

std::size_t lines_in(std::string_view text) { return 1 + static_cast<std::size_t>(std::ranges::count(text, '\n')); }

}  // namespace

Rates rates_between(const InboxStatus& before, const InboxStatus& now, std::chrono::duration<double> time) {
  Rates rates;
  for (const auto& consumer : now.consumers) {
    const auto earlier = std::ranges::find(before.consumers, consumer.consumer, &ConsumerStatus::consumer);
    const std::int64_t start = earlier == before.consumers.end() ? 0 : earlier->consumed;
    const std::int64_t more = std::max<std::int64_t>(consumer.consumed - start, 0);
    rates[consumer.consumer] = time.count() > 0 ? static_cast<double>(more) / time.count() : 0;
  }
  return rates;
}

std::string status_json(const InboxStatus& status, const std::optional<Rates>& now, const Pauses& pauses) {
  auto consumers = Json::array();
  for (const auto& c : status.consumers) {
    Json json = as_json(c);
    if (now) {
      const auto found = rate_of(now, c.consumer);
      json.set("now_per_second", found ? JsonScalar(*found) : nullptr);
    }
    consumers.append(std::move(json));
  }
  Json json{{"database", status.database},
            {"server_version", status.server_version},
            {"schema_version", status.schema_version},
            {"rows", status.rows},
            {"bytes", status.bytes},
            {"consumers", nullptr},
            {"purged", status.purged},
            {"encryption", status.encryption}};
  json.set("consumers", std::move(consumers));
  json.set("pauses", as_json(pauses));
  return json.text();
}

std::string status_text(const InboxStatus& status, const std::optional<Rates>& now, std::size_t columns,
                        const Pauses& pauses) {
  std::string text = fmt::format("{} {}, schema version {}, {} {}", status.database, status.server_version,
                                 status.schema_version, number(status.rows), status.rows == 1 ? "row" : "rows");
  if (status.bytes > 0) text += fmt::format(", {} bytes", number(status.bytes));
  if (!status.encryption.empty()) text += "\nencrypted: " + status.encryption;
  for (const ConsumerPause& each : pauses) text += '\n' + line_of(each);
  if (!status.consumers.empty()) text += "\n\n" + counts(status, now, columns) + "\n\n" + times(status, columns);
  return text;
}

std::string status_text_fitting(const InboxStatus& status, const std::optional<Rates>& now, const TerminalSize& size,
                                const Pauses& pauses) {
  std::string whole = status_text(status, now, size.columns, pauses);
  const std::size_t all = status.consumers.size();
  const std::size_t room = size.rows - 1;  // the cursor needs the last line
  if (size.rows < 2 || all < 2 || lines_in(whole) <= room) return whole;
  InboxStatus some = status;
  some.consumers.resize(1);
  const std::size_t least = lines_in(status_text(some, now, size.columns, pauses));
  const std::size_t each = std::max<std::size_t>((lines_in(whole) - least) / (all - 1), 1);
  constexpr std::size_t note = 2;
  const std::size_t more = room > least + note ? (room - least - note) / each : 0;
  some.consumers = most_active(status, now, 1 + more);
  return status_text(some, now, size.columns, pauses) +
         fmt::format("\n\nand {} more consumers, none more active; --consumer NAME shows one",
                     all - some.consumers.size());
}

}  // namespace txinbox::cli
