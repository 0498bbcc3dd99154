#include "torture/open_transactions.hpp"

#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/result.hpp>

#include "backend/registry.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/scratch_sql.hpp"
#include "torture/scratch_tables.hpp"

namespace txinbox::torture {
namespace {

/// Reads all rows of a query that locks them, and then releases the locks. False if another transaction has locked one
/// of them.
bool can_lock(soci::session& sql, const std::string& begin, const std::string& query) {
  sql << begin;
  bool locked = true;
  try {
    if (!query.empty()) {
      std::string value;
      soci::statement all = (sql.prepare << query, soci::into(value));
      all.execute();
      while (all.fetch()) {
      }
    }
  } catch (const soci::soci_error&) {
    const auto error = std::current_exception();
    sql << "rollback";
    if (!is_transient(error)) throw;
    locked = false;
  }
  if (locked) sql << "rollback";
  return locked;
}

}  // namespace

std::optional<std::string> open_transaction(soci::session& sql, const std::string& name) {
  const auto own = scratch_sql_of(backend::database_of(sql));
  if (!own.count_open.empty()) {
    int count = 0;
    sql << std::string(own.count_open), soci::into(count), soci::use(name);
    if (count == 0) return std::nullopt;
    return fmt::format("{} sessions", count);
  }
  if (own.has_one_writer) {
    try {
      return can_lock(sql, "begin immediate", "") ? std::nullopt : std::optional<std::string>("the writer");
    } catch (const soci::soci_error&) {
      if (!is_transient(std::current_exception())) throw;
      return "the writer";
    }
  }
  if (!can_lock(sql, "start transaction", fmt::format("select id from {} for update nowait", account_table))) {
    return "a lock on an account";
  }
  if (!can_lock(sql, "start transaction",
                fmt::format("select business_key from {} for update nowait", resource_table))) {
    return "a lock on a resource";
  }
  if (!can_lock(sql, "start transaction",
                fmt::format("select business_key from txinbox_consumed_message where consumer = '{}' for update nowait",
                            consumer_name))) {
    return "a lock on a row in the inbox";
  }
  return std::nullopt;
}

}  // namespace txinbox::torture
