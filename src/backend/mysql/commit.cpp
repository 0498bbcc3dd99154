// The commit on MariaDB and MySQL: it confirms the claims in the same transaction.

#include <mysqld_error.h>

#include <algorithm>

#include <fmt/format.h>

#include "backend/mysql/session.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

/// Returns one more statement of a compound statement. If it does not change this number of rows, it fails with a
/// savepoint that does not exist. A SIGNAL would need a literal, which the session's character set can spoil.
std::string changing(std::size_t rows, const std::string& statement) {
  return fmt::format("; {}; IF ROW_COUNT() <> {} THEN RELEASE SAVEPOINT txinbox_no_such_savepoint; END IF", statement,
                     rows);
}

/// Whether `closing_` fits: there is one claim, and nothing else to write.
bool is_usual(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) {
  return claims.size() == 1 && !claims[0].confirmed && !claims[0].undecided && writes.empty();
}

}  // namespace

/// It forces the primary key: on a small table the optimizer may choose a scan, which would wait for rows of other
/// transactions.
std::string MysqlSession::confirmation_sql(const std::string& result, const std::string& consumer,
                                           const std::string& keys, const std::string& token) const {
  return fmt::format(
      "UPDATE {} FORCE INDEX (PRIMARY) SET state = 'consumed', result = {}, lease_expires_at = NULL WHERE "
      "consumer = {} AND business_key IN ({}) AND attempt_token = {}",
      table_, result, consumer, keys, token);
}

/// Returns one statement for all claims of a consumer that have no result, and one for each claim that has a result.
std::vector<MysqlSession::Confirmation> MysqlSession::confirmations(std::span<const ClaimToCommit> claims) const {
  const auto update = [&](const ClaimToCommit& claim, const std::string& keys) {
    return confirmation_sql(claim.result ? hex_literal(*claim.result) : "NULL", hex_literal(claim.consumer), keys,
                            hex_literal(claim.token->bytes()));
  };
  std::vector<Confirmation> all;
  for (auto claim = claims.begin(); claim != claims.end();) {
    const ClaimToCommit& first = *claim;
    std::string keys;
    std::size_t rows = 0;
    for (; claim != claims.end() && claim->consumer == first.consumer; ++claim) {
      if (claim->result) {
        all.push_back({update(*claim, hex_literal(claim->business_key)), 1});
      } else if (!claim->confirmed) {
        keys += (rows++ == 0 ? "" : ", ") + hex_literal(claim->business_key);
      }
    }
    if (rows > 0) all.push_back({update({first.consumer, {}, first.token}, keys), rows});
  }
  return all;
}

/// Returns what a compound statement runs after the release of a savepoint: it confirms the claims, and runs the
/// statements.
std::string MysqlSession::closing_statements(std::span<const ClaimToCommit> claims,
                                             std::span<const std::string> writes) const {
  std::string sql;
  for (const Confirmation& each : confirmations(claims)) sql += changing(each.rows, each.sql);
  for (const std::string& each : writes) sql += "; " + each;
  return sql;
}

bool MysqlSession::confirm(std::span<const ClaimToCommit> claims) {
  MYSQL* db = connection();
  for (const Confirmation& each : confirmations(claims)) {
    exec(db, each.sql);
    if (mysql_affected_rows(db) != each.rows) return false;
  }
  return true;
}

std::string MysqlSession::closing_sql(const std::string& statements) const {
  return compound(fmt::format("RELEASE SAVEPOINT {}{}; COMMIT{}", guard_, statements, end_of_transaction()));
}

/// The values of `closing_values` stand for the question marks.
std::string MysqlSession::any_closing_sql() const {
  return closing_sql(changing(1, fmt::format("UPDATE {} SET state = 'consumed', result = ? WHERE consumer = ? AND "
                                             "business_key = ? AND attempt_token = ?",
                                             table_)));
}

std::array<std::string_view, 4> MysqlSession::closing_values(const ClaimToCommit& claim) {
  return {claim.result.value_or(std::string_view()), claim.consumer, claim.business_key, claim.token->bytes()};
}

CommitStatus MysqlSession::commit(std::span<const ClaimToCommit> claims, std::span<const std::string> writes) {
  MYSQL* db = native();
  if (db == nullptr || !is_configured_connection(db)) return CommitStatus::not_ours;
  if (db->status != MYSQL_STATUS_READY) return CommitStatus::not_ours;  // a result that the handler has not read
  commit_sent_ = false;
  if (in_one_statement()) {
    if (const auto status = commit_in_one_statement(db, claims, writes)) return *status;
  }
  if (calls_procedures() && is_usual(claims, writes)) {
    if (const auto status = call_confirm_and_commit(db, claims[0])) return *status;
  }

  if (!runs_on_savepoint("RELEASE SAVEPOINT " + guard_)) return CommitStatus::not_ours;
  if (!confirm(claims)) return CommitStatus::not_ours;
  for (const std::string& sql : writes) exec(db, sql);
  commit_sent_ = true;
  exec(db, "COMMIT");
  if (pooled_) {
    if (!restore(db)) thread_id_ = 0;
  } else if (autocommit_) {
    try_exec(db, "SET autocommit = 1");  // already committed; if this fails, the connection is lost
  }
  return CommitStatus::committed;
}

/// Returns the prepared statement that closes the transaction, with its values. The statement is null if none is
/// prepared that fits.
MysqlSession::PreparedClosing MysqlSession::prepared_closing(std::span<const ClaimToCommit> claims,
                                                             std::span<const std::string> writes) {
  MYSQL* db = connection();
  if (is_usual(claims, writes)) {
    const auto values = closing_values(claims[0]);
    return {closing_.prepared_on(db) ? &closing_ : nullptr, {values.begin(), values.end()}};
  }
  const auto fits = [&](const ClaimToCommit& claim) {
    return claim.consumer == claims[0].consumer && !claim.result && !claim.confirmed;
  };
  if (!pooled_ || !writes.empty() || claims.size() < 2 || !std::ranges::all_of(claims, fits)) return {};
  PreparedClosing closing;
  closing.statement = closing_all_.prepared_for(db, claims.size(), [&] {
    std::string keys = "?";
    for (std::size_t i = 1; i < claims.size(); ++i) keys += ", ?";
    return closing_sql(changing(claims.size(), confirmation_sql("NULL", "?", keys, "?")));
  });
  closing.values.push_back(claims[0].consumer);
  for (const ClaimToCommit& each : claims) closing.values.push_back(each.business_key);
  closing.values.push_back(claims[0].token->bytes());
  return closing;
}

/// Returns none if a handler has changed a caller's session so that it takes no compound statement.
std::optional<CommitStatus> MysqlSession::commit_in_one_statement(MYSQL* db, std::span<const ClaimToCommit> claims,
                                                                  std::span<const std::string> writes) {
  if (drain(db) != 0) throw_mysql_error(db);
  auto [prepared, values] = prepared_closing(claims, writes);
  commit_sent_ = true;
  unsigned error = prepared != nullptr ? prepared->try_run(values) : 0;
  if (prepared != nullptr && !pooled_ && error == ER_UNKNOWN_STMT_HANDLER) {  // a proxy has reset the connection
    prepared->close();
    prepared = nullptr;
  }
  if (prepared == nullptr) error = try_exec(db, closing_sql(closing_statements(claims, writes)));
  if (error == ER_SP_DOES_NOT_EXIST) return CommitStatus::not_ours;
  if (refuses_compounds(error)) {
    commit_sent_ = false;
    return std::nullopt;
  }
  if (error != 0 && prepared != nullptr) prepared->throw_error();
  if (error != 0) throw_mysql_error(db);
  if (pooled_ && !restore_after_compound(db)) thread_id_ = 0;
  return CommitStatus::committed;
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
