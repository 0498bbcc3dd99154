#include <txinbox/inspect.hpp>

#include <fmt/format.h>
#include <soci/soci.h>

#include <algorithm>
#include <map>

#include "backend/backend.hpp"
#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "hex.hpp"
#include "key.hpp"
#include "verification.hpp"

namespace txinbox::inline TXINBOX_ABI {
namespace {

void add(ConsumerStatus& status, const std::string& state, std::int64_t rows, const std::string& oldest,
         const std::string& newest) {
  if (state == "consumed") status.consumed += rows;
  if (state == "consuming") status.consuming += rows;
  if (state == "parked" || state == "torn") status.parked += rows;
  // All of one form, so the order of the texts is that of the times.
  if (status.oldest.empty() || oldest < status.oldest) status.oldest = oldest;
  status.newest = std::max(status.newest, newest);
}

}  // namespace

std::string_view to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "unknown";
}

std::vector<Finding> diagnose(soci::session& sql) {
  const auto& database = backend::database_of(sql);
  const detail::OutsideTransaction outside(sql);
  const auto catalog = database.catalog(sql);
  std::vector<Finding> findings;
  const auto take = [&](const std::vector<backend::Problem>& problems) {
    std::ranges::transform(problems, std::back_inserter(findings), &backend::Problem::finding);
  };
  take(detail::examine(sql, *catalog, database.name()).problems);
  take(database.attach(sql, backend::Ownership::caller)->unsafe_settings());
  std::ranges::move(catalog->check_server(), std::back_inserter(findings));
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
  return findings;
}

Status status(soci::session& sql) {
  const auto& database = backend::database_of(sql);
  const auto catalog = database.catalog(sql);
  const auto schema = detail::schema_of_tables(*catalog);
  const auto dialect = database.dialect(schema);
  Status status{.database = std::string(database.name()), .server_version = catalog->server_version(), .consumers = {}};
  status.schema_version = detail::examine(sql, *catalog, database.name()).version;
  status.bytes = catalog->table_bytes(schema);

  std::map<std::string, ConsumerStatus> consumers;
  for (const backend::Row& row :
       backend::query(sql,
                      fmt::format("SELECT consumer, state, count(*), {}, {} FROM {} GROUP BY consumer, state",
                                  dialect->utc_text("min(consumed_at)"), dialect->utc_text("max(consumed_at)"),
                                  dialect->table(backend::consumed_message_table)),
                      5)) {
    const auto rows = backend::number_in(row[2].value_or(""));
    auto& consumer = consumers[row[0].value_or("")];
    consumer.consumer = row[0].value_or("");
    add(consumer, row[1].value_or(""), rows, row[3].value_or(""), row[4].value_or(""));
    status.rows += rows;
  }
  for (auto& [name, consumer] : consumers) status.consumers.push_back(std::move(consumer));
  return status;
}

std::optional<ConsumedMessage> find(soci::session& sql, std::string_view consumer, std::string_view business_key) {
  detail::check_consumer(consumer);
  detail::check_business_key(business_key);
  const auto& database = backend::database_of(sql);
  const auto dialect = database.dialect(detail::schema_of_tables(*database.catalog(sql)));
  const auto rows =
      backend::query(sql,
                     fmt::format("SELECT message_id, state, {}, {} FROM {} WHERE consumer = {} AND business_key = {}",
                                 dialect->utc_text("consumed_at"), dialect->hex_text("result"),
                                 dialect->table(backend::consumed_message_table), dialect->text(consumer),
                                 dialect->text(business_key)),
                     4);
  if (rows.empty()) return std::nullopt;
  const auto& row = rows.front();
  ConsumedMessage found{.consumer = std::string(consumer),
                        .business_key = std::string(business_key),
                        .message_id = row[0].value_or(""),
                        .state = row[1].value_or(""),
                        .consumed_at = row[2].value_or(""),
                        .stored = {}};
  if (row[3]) found.stored = detail::from_hex(*row[3]);
  return found;
}

}  // namespace txinbox::inline TXINBOX_ABI
