#include "torture/evidence.hpp"

#include <fmt/format.h>
#include <soci/soci.h>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/scratch_sql.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {
namespace {

std::vector<LedgerLine> read_ledger(soci::session& sql) {
  std::vector<LedgerLine> lines;
  LedgerLine line;
  long long amount = 0;
  long long fence = 0;
  long long place = 0;
  soci::statement all = (sql.prepare << fmt::format("select run, business_key, account_from, account_to, amount, "
                                                    "coalesce(fence, 0), coalesce(place, 0) from {} order by run",
                                                    ledger_table),
                         soci::into(line.run), soci::into(line.business_key), soci::into(line.transfer.from),
                         soci::into(line.transfer.to), soci::into(amount), soci::into(fence), soci::into(place));
  all.execute();
  while (all.fetch()) {
    line.transfer.amount = amount;
    line.fence = fence;
    line.place = place;
    lines.push_back(line);
  }
  return lines;
}

std::vector<InboxRow> read_inbox(soci::session& sql) {
  // The storm's results are text.
  const std::string stored_as_text =
      fmt::format(fmt::runtime(scratch_sql_of(backend::database_of(sql)).as_text), "result");
  const std::string consumer = consumer_name;
  std::vector<InboxRow> rows;
  std::string business_key;
  std::string message_id;
  std::string state;
  std::string stored;
  long long fence = 0;
  soci::indicator is_stored = soci::i_null;
  soci::statement all = (sql.prepare << fmt::format("select business_key, coalesce(message_id, ''), state, {}, "
                                                    "coalesce(lease_fence, 0) from txinbox_consumed_message "
                                                    "where consumer = :c order by business_key",
                                                    stored_as_text),
                         soci::into(business_key), soci::into(message_id), soci::into(state),
                         soci::into(stored, is_stored), soci::into(fence), soci::use(consumer));
  all.execute();
  while (all.fetch()) {
    InboxRow& row = rows.emplace_back(InboxRow{business_key, message_id, state});
    if (is_stored == soci::i_ok) row.stored = stored;
    row.fence = fence;
  }
  return rows;
}

std::map<int, std::int64_t> read_balances(soci::session& sql) {
  std::map<int, std::int64_t> balances;
  int id = 0;
  long long balance = 0;
  soci::statement all =
      (sql.prepare << fmt::format("select id, balance from {}", account_table), soci::into(id), soci::into(balance));
  all.execute();
  while (all.fetch()) balances[id] = balance;
  return balances;
}

std::map<std::string, ResourceRow> read_resources(soci::session& sql) {
  std::map<std::string, ResourceRow> resources;
  std::string key;
  long long fence = 0;
  long long effects = 0;
  soci::statement all = (sql.prepare << fmt::format("select business_key, fence, effects from {}", resource_table),
                         soci::into(key), soci::into(fence), soci::into(effects));
  all.execute();
  while (all.fetch()) resources[key] = {.fence = fence, .effects = effects};
  return resources;
}

}  // namespace

Evidence read_evidence(soci::session& sql) {
  return {.ledger = read_ledger(sql),
          .inbox = read_inbox(sql),
          .balances = read_balances(sql),
          .resources = read_resources(sql)};
}

}  // namespace txinbox::torture
