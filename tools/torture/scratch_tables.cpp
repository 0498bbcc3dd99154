#include "torture/scratch_tables.hpp"

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/outbox_messages.hpp>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/outbox_sink.hpp"
#include "torture/plan.hpp"
#include "torture/scratch_sql.hpp"

namespace txinbox::torture {
namespace {

// The most rows of the inbox that one transaction removes, because a service's statements must not wait long for it.
constexpr int rows_at_once = 5'000;

bool is_there(soci::session& sql, const std::string& table) {
  return !backend::database_of(sql).catalog(backend::connection_of(sql))->find_schema(table).empty();
}

/// Whether the consumer has a row in the inbox.
bool has_rows(soci::session& sql) {
  int found = 0;
  const std::string consumer = consumer_name;
  sql << "select count(*) from (select business_key from txinbox_consumed_message where consumer = :c limit 1) first",
      soci::into(found), soci::use(consumer);
  return found > 0;
}

/// Whether the outbox has a message of the storm.
bool has_messages(soci::session& sql) { return !list_outbox(sql, {.topic = outbox_topic, .limit = 1}).empty(); }

void create_accounts(soci::session& sql) {
  // `touched` is a column that can change without a change of a balance.
  sql << fmt::format(
      "create table {} (id integer not null primary key, balance bigint not null, touched bigint not null){}",
      account_table, scratch_sql_of(backend::database_of(sql)).table_options);
}

// The business key is not unique in the ledger, so that a doubled effect is recorded and not refused.
void create_ledger(soci::session& sql) {
  const auto own = scratch_sql_of(backend::database_of(sql));
  sql << fmt::format(
      "create table {} (run varchar(40) not null primary key, business_key {} not null, account_from integer not null, "
      "account_to integer not null, amount bigint not null, fence bigint, place bigint){}",
      ledger_table, own.key_type, own.table_options);
}

void create_resource(soci::session& sql) {
  const auto own = scratch_sql_of(backend::database_of(sql));
  sql << fmt::format(
      "create table {} (business_key {} not null primary key, fence bigint not null, effects bigint not null){}",
      resource_table, own.key_type, own.table_options);
}

/// Removes the consumer's rows from a table of the inbox.
void remove_rows(soci::session& sql, const std::string& table) {
  const std::string consumer = consumer_name;
  while (true) {
    // The first key that this transaction does not remove. There is none if fewer rows are left.
    std::string bound;
    sql << fmt::format("select business_key from {} where consumer = :c order by business_key limit 1 offset {}", table,
                       rows_at_once),
        soci::into(bound), soci::use(consumer);
    if (!sql.got_data()) break;
    sql << fmt::format("delete from {} where consumer = :c and business_key < :k", table), soci::use(consumer),
        soci::use(bound);
  }
  sql << fmt::format("delete from {} where consumer = :c", table), soci::use(consumer);
}

}  // namespace

std::vector<std::string> scratch_leftovers(soci::session& sql) {
  std::vector<std::string> found;
  for (const char* table : {account_table, ledger_table, resource_table}) {
    if (is_there(sql, table)) found.push_back(fmt::format("the table {}", table));
  }
  if (has_messages(sql)) found.push_back(fmt::format("messages of the topic {} in the outbox", outbox_topic));
  if (has_rows(sql)) found.push_back(fmt::format("rows of the consumer {} in txinbox_consumed_message", consumer_name));
  return found;
}

void create_scratch_tables(soci::session& sql) {
  reach_all_shards(sql);
  create_accounts(sql);  // if two storms begin at the same time, one of them fails here
  try {
    create_ledger(sql);
    create_resource(sql);
    std::string values;
    for (int id = 0; id < account_count; ++id) {
      values += fmt::format("{}({}, {}, 0)", id == 0 ? "" : ", ", id, initial_balance);
    }
    sql << fmt::format("insert into {} (id, balance, touched) values {}", account_table, values);
  } catch (...) {
    try {
      remove_scratch(sql);
    } catch (const soci::soci_error&) {  // NOLINT(bugprone-empty-catch): the first error says more
    }
    throw;
  }
}

void remove_scratch(soci::session& sql) {
  reach_all_shards(sql);
  for (const char* table : {resource_table, ledger_table, account_table}) {
    if (is_there(sql, table)) sql << fmt::format("drop table {}", table);
  }
  for (const auto state : {OutboxState::waiting, OutboxState::failing, OutboxState::parked}) {
    while (discard_outbox(sql, {.topic = outbox_topic, .state = state, .limit = rows_at_once}) != 0) {
    }
  }
  remove_rows(sql, "txinbox_consumed_message");
  remove_rows(sql, "txinbox_failed_message");
}

}  // namespace txinbox::torture
