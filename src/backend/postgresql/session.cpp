#include "backend/postgresql/session.hpp"

#include <poll.h>

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "backend/database.hpp"
#include "backend/postgresql/parts.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

struct Setting {
  const char* name;
  bool reported;  ///< The server reports each change of the setting, so comparing it costs nothing.
};

constexpr std::string_view read_only_setting = "default_transaction_read_only";

/// The settings that a handler can leave changed for the next handler.
constexpr std::array settings = {Setting{"session_authorization", true},  // before role, because setting it resets the
                                                                          // role
                                 Setting{"search_path", false}, Setting{"role", false},
                                 Setting{"client_encoding", true}, Setting{"default_transaction_isolation", false},
                                 Setting{"default_transaction_read_only", false}, Setting{"statement_timeout", false},
                                 Setting{"lock_timeout", false}, Setting{"idle_in_transaction_session_timeout", false},
                                 Setting{"synchronous_commit", false}, Setting{"standard_conforming_strings", true},
                                 Setting{"row_security", false},
                                 Setting{"session_replication_role", false},  // can switch off triggers and foreign
                                                                              // keys
                                 Setting{"TimeZone", true}, Setting{"DateStyle", true}};

}  // namespace

PostgresqlSession::PostgresqlSession(ConnectionPtr owner, Ownership ownership)
    : Session(InitialState::consumed, std::move(owner)), pooled_(ownership == Ownership::pool) {
  name_statements();
}

PGconn* PostgresqlSession::connection() {
  PGconn* connection = native();
  if (connection == nullptr) throw Error(ErrorCode::unsupported_database, "the session is not connected");
  return connection;
}

void PostgresqlSession::configure(const PoolOptions& options) {
  PGconn* pg = connection();
  process_id_ = PQbackendPID(pg);
  limit_silence(pg, longest_statement(options));
  watch_results(pg);
  // Without this function, libpq would write notices to standard error. Notices can contain values.
  PQsetNoticeProcessor(
      pg, [](void*, const char*) {}, nullptr);
  // The server's own keepalive detects that a client's host has vanished while the server waits for it.
  const auto configured =
      exec(pg, fmt::format("SELECT pg_catalog.pg_backend_pid(), pg_catalog.set_config('default_transaction_isolation', "
                           "'read committed', false),"
                           " pg_catalog.set_config('default_transaction_read_only', 'off', false),"
                           " pg_catalog.set_config('client_encoding', 'UTF8', false),"
                           " pg_catalog.set_config('lock_timeout', '{}ms', false),"
                           " pg_catalog.set_config('statement_timeout', '{}ms', false),"
                           " pg_catalog.set_config('idle_in_transaction_session_timeout', '{}ms', false),"
                           " pg_catalog.set_config('tcp_keepalives_idle', '60', false),"
                           " pg_catalog.set_config('tcp_keepalives_interval', '10', false),"
                           " pg_catalog.set_config('tcp_keepalives_count', '6', false)",
                           options.lock_timeout.count(), options.statement_timeout.count(),
                           options.idle_transaction_timeout.count()));
  // A pooler reports a process number of its own.
  is_direct_ = field(configured, 0, 0) == std::to_string(process_id_);
}

void PostgresqlSession::remember_settings() {
  PGconn* pg = connection();
  std::string query;
  for (const Setting& each : settings) {
    query += fmt::format("{} pg_catalog.current_setting('{}')", query.empty() ? "SELECT" : ",", each.name);
  }
  const auto values = exec(pg, query);
  settings_.sql.clear();
  restore_.clear();
  remembered_.clear();
  for (const Setting& each : settings) {
    remembered_.push_back(field(values, 0, static_cast<int>(remembered_.size())));
    if (is_direct_ && each.name == read_only_setting) lends_read_only_ = std::exchange(remembered_.back(), "on");
    const std::string value = quote_literal(pg, remembered_.back());
    if (std::string_view(each.name) == "role") role_ = value;
    if (!each.reported) {
      // The server makes the comparison: one column for all settings takes half the time of one column for each.
      settings_.sql += fmt::format("{} pg_catalog.current_setting('{}') OPERATOR(pg_catalog.=) {}",
                                   settings_.sql.empty() ? "SELECT" : " AND", each.name, value);
    }
    // Set a setting only if it differs. Few users may set all of these settings, but a user who has changed one may
    // restore it.
    restore_ += fmt::format(
        "{0} CASE WHEN pg_catalog.current_setting('{1}') <> {2} THEN pg_catalog.set_config('{1}', {2}, false) END",
        restore_.empty() ? "SELECT" : ",", each.name, value);
  }
  // After a handler has ended the transaction, the server refuses the handler's writes. This is not used behind a
  // pooler, because a pooler gives the server's session to other clients, too.
  refuses_writes_ = is_direct_;
  if (refuses_writes_) exec(pg, restore_);
  name_statements();
}

void PostgresqlSession::lend() {
  if (refuses_writes_) exec(connection(), fmt::format("SET {} = {}", read_only_setting, lends_read_only_));
}

/// `asked` is the server's answer: whether the settings that it does not report to the client are unchanged.
bool PostgresqlSession::settings_are_remembered(const PGresult* asked) noexcept {
  if (std::string_view(PQgetvalue(asked, 0, 0)) != "t") return false;
  PGconn* pg = native();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (!settings.at(i).reported) continue;
    const char* now = PQparameterStatus(pg, settings.at(i).name);
    if (now == nullptr || remembered_[i] != now) return false;
  }
  return true;
}

void PostgresqlSession::use_schema(const std::string& schema) {
  dialect_ = make_postgresql_dialect(schema);
  const std::string table = dialect_->table(consumed_message_table);
  if (table == table_) return;
  table_ = table;
  // If the table was dropped, the claim itself fails, with the server's code.
  same_inbox_.sql = fmt::format(
      "SELECT CASE WHEN pg_catalog.to_regclass({0}) IS NULL THEN true ELSE "
      "pg_catalog.to_regclass('{1}') OPERATOR(pg_catalog.=) pg_catalog.to_regclass({0}) END",
      dialect_->text(table_), consumed_message_table);
  name_statements();
}

std::vector<Problem> PostgresqlSession::unsafe_settings() {
  std::vector<Problem> problems;
  for (const auto& [name, remedy] : {std::pair("client_encoding", "SET client_encoding = 'UTF8'; open_pool does so"),
                                     std::pair("server_encoding", "create the database with ENCODING 'UTF8'")}) {
    const char* encoding = PQparameterStatus(connection(), name);  // needs no round trip
    // Qt sets UNICODE, which is another name of UTF8.
    if (encoding != nullptr && pg_char_to_encoding(encoding) == pg_char_to_encoding("UTF8")) continue;
    problems.push_back(
        {ErrorCode::unsafe_connection,
         {Severity::error, name,
          fmt::format("{}: different keys can become one", encoding == nullptr ? "unknown" : encoding), remedy}});
  }
  return problems;
}

void PostgresqlSession::refuse_other_inbox() {
  if (!pooled_) require_same_inbox(exec(connection(), same_inbox_.sql));
}

/// `found` is the result of `same_inbox_`.
void PostgresqlSession::require_same_inbox(const PostgresqlResult& found) const {
  if (PQntuples(found.get()) == 1 && std::string_view(PQgetvalue(found.get(), 0, 0)) == "t") return;
  if (PQtransactionStatus(native()) != PQTRANS_IDLE) exec(native(), "ROLLBACK");
  throw_on_errors({{ErrorCode::unsafe_connection,
                    {Severity::error, "search_path",
                     fmt::format("it no longer finds {}, which this consumer uses since its first message", table_),
                     "set it back, or make a consumer for each schema; a handler may use SET LOCAL"}}});
}

bool PostgresqlSession::intact() noexcept {
  PGconn* pg = native();
  if (pg == nullptr || PQstatus(pg) != CONNECTION_OK) return false;
  if (!pooled_ || process_id_ == 0) return true;
  if (PQbackendPID(pg) != process_id_) return false;
  pollfd readable{PQsocket(pg), POLLIN, 0};
  if (PQtransactionStatus(pg) == PQTRANS_IDLE && poll(&readable, 1, 0) > 0) {
    // The server has sent either a last message before the end of the connection, or a notification. A second read by
    // libpq finds the end.
    PQconsumeInput(pg);
    if (poll(&readable, 1, 0) > 0) PQconsumeInput(pg);
  }
  return PQstatus(pg) == CONNECTION_OK;
}

bool PostgresqlSession::reset() noexcept {
  if (!intact()) return false;
  PGconn* pg = native();
  const bool open = PQtransactionStatus(pg) != PQTRANS_IDLE;
  return succeeded(try_exec(pg, (open ? "ROLLBACK; " : "") + restore_).get());
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
