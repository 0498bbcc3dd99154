#include "backend/postgresql_session.hpp"

#include <poll.h>

#include <array>

#include <fmt/format.h>

#include "hex.hpp"

namespace txinbox::inline TXINBOX_ABI::backend {
namespace {

/// What a handler can leave behind on a session and the next one would meet.
constexpr std::array settings = {"session_authorization",  // before role, which it resets
                                 "search_path",
                                 "role",
                                 "client_encoding",
                                 "default_transaction_isolation",
                                 "default_transaction_read_only",
                                 "statement_timeout",
                                 "lock_timeout",
                                 "idle_in_transaction_session_timeout",
                                 "synchronous_commit",
                                 "standard_conforming_strings",
                                 "row_security",
                                 "TimeZone",
                                 "DateStyle"};

/// no_active_sql_transaction, in_failed_sql_transaction, invalid_savepoint: the guard is gone.
bool says_guard_is_gone(std::string_view state) { return state == "25P01" || state == "25P02" || state == "3B001"; }

}  // namespace

PostgresqlSession::PostgresqlSession(soci::session& sql, Ownership ownership)
    : sql_(sql), pooled_(ownership == Ownership::pool) {}

PGconn* PostgresqlSession::connection() {
  PGconn* connection = postgresql_native(sql_);
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the SOCI session is not connected");
  return connection;
}

void PostgresqlSession::configure(const PoolOptions& options) {
  PGconn* pg = connection();
  process_id_ = PQbackendPID(pg);
  // libpq would write notices, which can hold values, to standard error.
  PQsetNoticeProcessor(
      pg, [](void*, const char*) {}, nullptr);
  // The server's own keepalive finds a client whose host has vanished while the server waits for it.
  exec(pg, fmt::format("SELECT set_config('default_transaction_isolation', 'read committed', false),"
                       " set_config('default_transaction_read_only', 'off', false),"
                       " set_config('client_encoding', 'UTF8', false),"
                       " set_config('lock_timeout', '{}ms', false),"
                       " set_config('statement_timeout', '{}ms', false),"
                       " set_config('idle_in_transaction_session_timeout', '{}ms', false),"
                       " set_config('tcp_keepalives_idle', '60', false),"
                       " set_config('tcp_keepalives_interval', '10', false),"
                       " set_config('tcp_keepalives_count', '6', false)",
                       options.lock_timeout.count(), options.statement_timeout.count(),
                       options.idle_transaction_timeout.count()));
}

void PostgresqlSession::remember_settings() {
  PGconn* pg = connection();
  std::string query;
  for (const char* name : settings) {
    query += fmt::format("{} current_setting('{}')", query.empty() ? "SELECT" : ",", name);
  }
  const auto values = exec(pg, query);
  restore_.clear();
  int column = 0;
  for (const char* name : settings) {
    restore_ += fmt::format("{} set_config('{}', {}, false)", restore_.empty() ? "SELECT" : ",", name,
                            quote_literal(pg, field(values, 0, column++)));
  }
}

void PostgresqlSession::use_schema(const std::string& schema) {
  table_ = quote_identifier(connection(), schema) + ".txinbox_consumed_message";
}

std::vector<Problem> PostgresqlSession::unsafe_settings() {
  std::vector<Problem> problems;
  for (const auto& [name, mend] : {std::pair("client_encoding", "SET client_encoding = 'UTF8'; open_pool does so"),
                                   std::pair("server_encoding", "create the database with ENCODING 'UTF8'")}) {
    const char* encoding = PQparameterStatus(connection(), name);  // known without a round trip
    if (encoding != nullptr && std::string_view(encoding) == "UTF8") continue;
    problems.push_back(
        {ErrorCode::unsafe_connection,
         {Severity::error, name,
          fmt::format("{}: different keys can become one", encoding == nullptr ? "unknown" : encoding), mend}});
  }
  return problems;
}

bool PostgresqlSession::intact() noexcept {
  PGconn* pg = postgresql_native(sql_);
  if (pg == nullptr || PQstatus(pg) != CONNECTION_OK) return false;
  if (!pooled_ || process_id_ == 0) return true;
  if (PQbackendPID(pg) != process_id_) return false;
  pollfd readable{PQsocket(pg), POLLIN, 0};
  if (PQtransactionStatus(pg) == PQTRANS_IDLE && poll(&readable, 1, 0) > 0) {
    // A farewell and then the end, or a notification: libpq sees the end when it reads once more.
    PQconsumeInput(pg);
    if (poll(&readable, 1, 0) > 0) PQconsumeInput(pg);
  }
  return PQstatus(pg) == CONNECTION_OK;
}

bool PostgresqlSession::clean() noexcept {
  if (!intact()) return false;
  PGconn* pg = postgresql_native(sql_);
  const bool open = PQtransactionStatus(pg) != PQTRANS_IDLE;
  return succeeded(try_exec(pg, (open ? "ROLLBACK; " : "") + restore_).get());
}

bool PostgresqlSession::in_transaction() {
  PGconn* pg = connection();
  if (PQstatus(pg) != CONNECTION_OK) throw_postgresql_error(pg, nullptr);
  return PQtransactionStatus(pg) != PQTRANS_IDLE;
}

std::string PostgresqlSession::begin_sql(const Token& guard) const {
  // A caller's own isolation level stays; a pool's sessions are READ COMMITTED by configuration.
  return fmt::format("BEGIN; SAVEPOINT {}", guard_name(guard));
}

void PostgresqlSession::begin(const Token& guard) { exec(connection(), begin_sql(guard)); }

std::string PostgresqlSession::insert_sql(const ClaimRow& row) {
  PGconn* pg = connection();
  return fmt::format(
      "INSERT INTO {} (consumer, business_key, message_id, state, attempt_token) VALUES ({}, {}, {}, 'consumed', '{}') "
      "ON CONFLICT (consumer, business_key) DO NOTHING",
      table_, quote_literal(pg, row.consumer), quote_literal(pg, row.business_key),
      row.message_id.empty() ? "NULL" : quote_literal(pg, row.message_id), row.token->hex());
}

std::string PostgresqlSession::key_condition(std::string_view consumer, std::string_view business_key) {
  // These bytes, whatever client_encoding the handler has set.
  return fmt::format(
      "consumer = convert_from(decode('{}', 'hex'), 'UTF8') AND business_key = convert_from(decode('{}', 'hex'), "
      "'UTF8')",
      detail::to_hex(consumer), detail::to_hex(business_key));
}

ClaimReply PostgresqlSession::claim(const ClaimRow& row) { return claim_with("", row); }

ClaimReply PostgresqlSession::begin_and_claim(const Token& guard, const ClaimRow& row) {
  return claim_with(begin_sql(guard) + "; ", row);
}

ClaimReply PostgresqlSession::claim_with(const std::string& before, const ClaimRow& row) {
  PGconn* pg = connection();
  const auto inserted = exec(pg, before + insert_sql(row));
  if (std::string_view(PQcmdTuples(inserted.get())) == "1") return {ClaimStatus::inserted};

  // A plain read: a share lock would write to the row (x7.4).
  const auto found = exec(
      pg,
      fmt::format("SELECT state, replace(attempt_token::text, '-', ''), encode(result, 'hex'), "
                  "greatest(0, coalesce(extract(epoch FROM lease_expires_at - clock_timestamp()) * 1000, 0))::bigint "
                  "FROM {} WHERE {}",
                  table_, key_condition(row.consumer, row.business_key)));
  if (PQntuples(found.get()) == 0) return {ClaimStatus::vanished};
  ClaimReply reply{ClaimStatus::exists};
  reply.row.state = field(found, 0, 0);
  reply.row.token_hex = field(found, 0, 1);
  if (PQgetisnull(found.get(), 0, 2) == 0) reply.row.result = detail::from_hex(field(found, 0, 2));
  reply.row.lease_remaining = std::chrono::milliseconds(std::stoll(field(found, 0, 3)));
  return reply;
}

CommitStatus PostgresqlSession::commit(const Token& guard, const std::vector<StoredResult>& results) {
  PGconn* pg = postgresql_native(sql_);
  // An aborted transaction would turn COMMIT into ROLLBACK without an error.
  if (pg == nullptr || PQtransactionStatus(pg) != PQTRANS_INTRANS) return CommitStatus::not_ours;

  std::string script = "RELEASE SAVEPOINT " + guard_name(guard);
  for (const StoredResult& each : results) {
    script += fmt::format("; UPDATE {} SET result = decode('{}', 'hex') WHERE {}", table_, detail::to_hex(each.result),
                          key_condition(each.consumer, each.business_key));
  }
  const std::size_t commit_index = 1 + results.size();
  script += "; COMMIT";
  if (pooled_) script += "; " + restore_;

  if (PQsendQuery(pg, script.c_str()) == 0) throw_postgresql_error(pg, nullptr);
  PostgresqlResult failure;
  std::size_t failed_index = 0;
  bool committed = false;
  std::size_t index = 0;
  for (PostgresqlResult result(PQgetResult(pg)); result; result.reset(PQgetResult(pg)), ++index) {
    if (!succeeded(result.get())) {
      if (!failure) {
        failure = std::move(result);
        failed_index = index;
      }
    } else if (index == commit_index) {
      committed = std::string_view(PQcmdStatus(result.get())) == "COMMIT";
    }
  }
  if (committed) {
    if (failure) process_id_ = -1;  // the settings were not restored: not intact, so the pool closes it
    return CommitStatus::committed;
  }
  if (failure && failed_index == 0 && says_guard_is_gone(sqlstate(failure.get()))) return CommitStatus::not_ours;
  if (failure || PQstatus(pg) != CONNECTION_OK) throw_postgresql_error(pg, failure.get());
  return CommitStatus::not_ours;  // COMMIT answered ROLLBACK
}

RollbackStatus PostgresqlSession::roll_back(const Token& guard) noexcept {
  PGconn* pg = postgresql_native(sql_);
  if (pg == nullptr || PQstatus(pg) != CONNECTION_OK) return RollbackStatus::failed;
  if (pooled_ && PQbackendPID(pg) != process_id_) return RollbackStatus::failed;
  const std::string end = pooled_ ? "ROLLBACK; " + restore_ : "ROLLBACK";
  if (PQtransactionStatus(pg) == PQTRANS_IDLE) {
    const bool restored = !pooled_ || succeeded(try_exec(pg, restore_).get());
    return restored ? RollbackStatus::not_ours : RollbackStatus::failed;
  }
  if (succeeded(try_exec(pg, fmt::format("ROLLBACK TO SAVEPOINT {}; {}", guard_name(guard), end)).get())) {
    return RollbackStatus::ours;
  }
  return succeeded(try_exec(pg, end).get()) ? RollbackStatus::not_ours : RollbackStatus::failed;
}

bool PostgresqlSession::mark_torn(const ClaimRow& row) {
  const auto marked =
      exec(connection(), fmt::format("UPDATE {} SET state = 'torn' WHERE {} AND attempt_token = '{}' "
                                     "AND state = 'consumed'",
                                     table_, key_condition(row.consumer, row.business_key), row.token->hex()));
  return std::string_view(PQcmdTuples(marked.get())) == "1";
}

}  // namespace txinbox::inline TXINBOX_ABI::backend
