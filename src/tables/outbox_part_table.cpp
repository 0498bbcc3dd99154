#include "tables/outbox_part_table.hpp"

#include <fmt/format.h>

#include "backend/query.hpp"
#include "backend/table_check.hpp"
#include "base/ascii.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

OutboxPartTable::OutboxPartTable(backend::Session& session)
    : session_(session),
      relays_(session.dialect().table(backend::outbox_relay_table)),
      parts_(session.dialect().table(backend::outbox_part_table)) {}

void OutboxPartTable::enter(const Token& relay, std::string_view name, std::chrono::milliseconds lease) const {
  const backend::Dialect& sql = session_.dialect();
  session_.change(fmt::format("INSERT INTO {} (token, name, started_at, lease_expires_at) VALUES ({}, {}, {}, {})",
                              relays_, sql.token(relay), sql.text(name), sql.now(), sql.now_plus(lease)));
}

bool OutboxPartTable::renew(const Token& relay, std::chrono::milliseconds lease) const {
  const backend::Dialect& sql = session_.dialect();
  return session_.change(fmt::format("UPDATE {} SET lease_expires_at = {} WHERE token = {} AND lease_expires_at > {}",
                                     relays_, sql.now_plus(lease), sql.token(relay), sql.now())) == 1;
}

void OutboxPartTable::leave(const Token& relay) const {
  session_.change(fmt::format("DELETE FROM {} WHERE token = {}", relays_, session_.dialect().token(relay)));
}

void OutboxPartTable::remove_expired() const {
  session_.change(fmt::format("DELETE FROM {} WHERE lease_expires_at <= {}", relays_, session_.dialect().now()));
}

std::set<std::string> OutboxPartTable::relays() const {
  std::set<std::string> tokens;
  for (const backend::Row& row : session_.read(
           fmt::format("SELECT {} FROM {} {}", session_.dialect().hex_token("token"), relays_, backend::all_rows), 1)) {
    tokens.insert(lower_case(row[0].value_or("")));
  }
  return tokens;
}

std::vector<std::pair<int, std::string>> OutboxPartTable::parts() const {
  std::vector<std::pair<int, std::string>> all;
  for (const backend::Row& row :
       session_.read(fmt::format("SELECT part, {} FROM {} ORDER BY part {}", session_.dialect().hex_token("owner"),
                                 parts_, backend::all_rows),
                     2)) {
    all.emplace_back(static_cast<int>(backend::number_in(row[0].value_or(""))), lower_case(row[1].value_or("")));
  }
  return all;
}

void OutboxPartTable::take(const Token& relay, const std::vector<int>& parts,
                           const std::set<std::string>& former_owners) const {
  if (parts.empty()) return;
  const backend::Dialect& sql = session_.dialect();
  std::string is_free = "owner IS NULL";
  for (const std::string& owner : former_owners) is_free += " OR owner = " + sql.token(Token::of(from_hex(owner)));
  session_.change(fmt::format("UPDATE {} SET owner = {} WHERE part IN ({}) AND ({})", parts_, sql.token(relay),
                              fmt::join(parts, ", "), is_free));
}

void OutboxPartTable::give_back(const Token& relay, const std::vector<int>& parts) const {
  if (parts.empty()) return;
  session_.change(fmt::format("UPDATE {} SET owner = NULL WHERE part IN ({}) AND owner = {}", parts_,
                              fmt::join(parts, ", "), session_.dialect().token(relay)));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
