#pragma once

// One statement for a whole batch: payments are added to the balances of their accounts.

#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

// docs/guides/batches.md: sums
/// The sum of each account, sorted by account. All transactions lock the rows in this order, so they do not deadlock.
using Sums = std::map<std::string, long long>;

inline Sums sums_of(std::span<txinbox::Delivery> deliveries) {
  Sums sums;
  for (const txinbox::Delivery& each : deliveries) {
    std::istringstream content(each.message().content);  // such as "alice 1250"
    std::string account;
    long long cents = 0;
    if (!(content >> account >> cents)) {
      throw txinbox::Error(txinbox::ErrorCode::rejected, "the payment has no account and amount");
    }
    sums[account] += cents;
  }
  return sums;
}

// docs/guides/batches.md: PostgreSQL
/// An array as PostgreSQL reads it. Its elements stand in quotes.
template <class Elements>
std::string array_of(const Elements& elements) {
  std::string array = "{";
  for (const auto& each : elements) {
    if (array.size() > 1) array += ',';
    array += '"';
    for (const char c : each) {
      if (c == '"' || c == '\\') array += '\\';
      array += c;
    }
    array += '"';
  }
  return array + '}';
}

/// Two parameters, however many accounts there are. So the statement stays prepared.
inline void add_on_postgresql(soci::session& sql, txinbox::Delivery& delivery, const Sums& sums) {
  std::vector<std::string> accounts;
  std::vector<std::string> cents;
  for (const auto& [account, sum] : sums) {
    accounts.push_back(account);
    cents.push_back(std::to_string(sum));
  }
  txinbox::execute(sql, delivery,
                   "insert into balance (account, cents) "
                   "select * from unnest(cast(:accounts as text[]), cast(:cents as bigint[])) "
                   "on conflict (account) do update set cents = balance.cents + excluded.cents",
                   array_of(accounts), array_of(cents));
}

// docs/guides/batches.md: VALUES
/// One row of VALUES for each account. `on_conflict` is what the database calls an upsert.
inline void add_with_values(soci::session& sql, const Sums& sums, const std::string& on_conflict) {
  std::string rows;
  soci::statement insert(sql);
  for (const auto& [account, cents] : sums) {
    rows += rows.empty() ? "(:account, :cents)" : ", (:account, :cents)";
    insert.exchange(soci::use(account));
    insert.exchange(soci::use(cents));
  }
  insert.alloc();
  insert.prepare("insert into balance (account, cents) values " + rows + on_conflict);
  insert.define_and_bind();
  insert.execute(true);
}

// docs/guides/batches.md: handler
/// The `BatchHandler`: it gets the new payments of a batch.
inline void add_payments(soci::session& sql, std::span<txinbox::Delivery> deliveries) {
  const Sums sums = sums_of(deliveries);
  const std::string database = sql.get_backend_name();
  if (database == "postgresql") {
    add_on_postgresql(sql, deliveries.front(), sums);
  } else if (database == "mysql") {
    add_with_values(sql, sums, " on duplicate key update cents = cents + values(cents)");
  } else {
    add_with_values(sql, sums, " on conflict (account) do update set cents = cents + excluded.cents");
  }
}
