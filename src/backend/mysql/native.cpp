#include "backend/mysql/native.hpp"

#include <memory>

#include <fmt/format.h>

#include "backend/query.hpp"
#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

struct FreeResult {
  void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
};
using MysqlResult = std::unique_ptr<MYSQL_RES, FreeResult>;

}  // namespace

MysqlHandle new_mysql_handle() {
  // The first use of the client library is not thread-safe.
  static const int initialized = mysql_library_init(0, nullptr, nullptr);
  return {initialized == 0 ? mysql_init(nullptr) : nullptr, &mysql_close};
}

unsigned try_exec(MYSQL* connection, std::string_view sql) noexcept {
  if (mysql_real_query(connection, sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
    return mysql_errno(connection);
  }
  // Do not ask for a result if there is none: the client library then forgets the number of affected rows.
  for (;;) {
    const MysqlResult dropped(mysql_store_result(connection));
    if (!dropped && mysql_field_count(connection) != 0) break;
    if (!mysql_more_results(connection) || mysql_next_result(connection) != 0) break;
  }
  return mysql_errno(connection);
}

unsigned drain(MYSQL* connection) noexcept {
  while (mysql_more_results(connection)) {
    if (mysql_next_result(connection) > 0) return mysql_errno(connection);
    const MysqlResult dropped(mysql_store_result(connection));
    if (!dropped && mysql_field_count(connection) != 0) return mysql_errno(connection);
  }
  return 0;
}

void exec(MYSQL* connection, std::string_view sql) {
  if (try_exec(connection, sql) != 0) throw_mysql_error(connection);
}

unsigned try_query(MYSQL* connection, std::string_view sql, MysqlReply& reply) {
  reply = {};
  if (mysql_real_query(connection, sql.data(), static_cast<unsigned long>(sql.size())) != 0) {
    return mysql_errno(connection);
  }
  {
    const MysqlResult result(mysql_store_result(connection));
    if (!result && mysql_field_count(connection) != 0) return mysql_errno(connection);
    reply.has_rows = result != nullptr;
    while (MYSQL_ROW fields = result ? mysql_fetch_row(result.get()) : nullptr) {
      const unsigned long* lengths = mysql_fetch_lengths(result.get());
      MysqlRow& row = reply.rows.emplace_back(mysql_num_fields(result.get()));
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (fields[i] != nullptr) row[i].emplace(fields[i], lengths[i]);
      }
    }
  }
  return drain(connection);
}

std::vector<MysqlRow> query_rows(MYSQL* connection, std::string_view sql) {
  MysqlReply reply;
  if (try_query(connection, sql, reply) != 0 || !reply.has_rows) throw_mysql_error(connection);
  return std::move(reply.rows);
}

std::optional<MysqlRow> query_row(MYSQL* connection, std::string_view sql) {
  auto rows = query_rows(connection, sql);
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

bool reconnects(MYSQL* connection) noexcept {
  char reconnect = 0;
  return mysql_get_option(connection, MYSQL_OPT_RECONNECT, &reconnect) == 0 && reconnect != 0;
}

void throw_mysql_error(MYSQL* connection) {
  throw_mysql_error(connection, mysql_errno(connection), mysql_error(connection));
}

void throw_mysql_error(MYSQL* connection, unsigned code, const std::string& text) {
  throw_database_error(mysql_name, connection, std::to_string(code), "txinbox: " + text);
}

unsigned mysql_number(const DatabaseError& error) noexcept { return static_cast<unsigned>(number_in(error.code())); }

std::string mysql_encryption(MYSQL* connection) {
  const char* cipher = mysql_get_ssl_cipher(connection);
  if (cipher == nullptr) return {};
#ifdef MARIADB_PACKAGE_VERSION
  const char* version = nullptr;
  if (mariadb_get_infov(connection, MARIADB_CONNECTION_TLS_VERSION, &version) == 0 && version != nullptr) {
    return fmt::format("{}, {}", version, cipher);
  }
#endif
  return cipher;
}

std::string hex_literal(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size() + 3);
  text = "x'";
  detail::append_hex(text, bytes);
  text += '\'';
  return text;
}

std::string quoted_identifier(std::string_view name) {
  std::string quoted = "`";
  for (const char c : name) quoted.append(c == '`' ? 2 : 1, c);
  return quoted + "`";
}

std::string quoted(std::string_view text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') literal += c;
    literal += c;
  }
  literal += '\'';
  return literal;
}

std::string key_condition(std::string_view consumer, std::string_view business_key) {
  return fmt::format("consumer = {} AND business_key = {}", hex_literal(consumer), hex_literal(business_key));
}

std::string compound(const std::string& statements) { return "BEGIN NOT ATOMIC " + statements + "; END"; }

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
