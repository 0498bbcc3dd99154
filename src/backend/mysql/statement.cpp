#include "backend/mysql/statement.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

[[noreturn]] void throw_statement_error(MYSQL_STMT* statement) {
  throw_mysql_error(statement->mysql, mysql_stmt_errno(statement), mysql_stmt_error(statement));
}

/// Reads the rows of a statement's result, each column as bytes.
std::vector<MysqlRow> fetch_all(MYSQL_STMT* statement) {
  const unsigned columns = mysql_stmt_field_count(statement);
  std::vector<MYSQL_BIND> binds(columns);  // no buffers: a fetch of the row gives only the lengths
  std::vector<unsigned long> lengths(columns);
  const auto nulls = std::make_unique<MysqlFlag[]>(columns);
  for (unsigned i = 0; i < columns; ++i) {
    binds[i].buffer_type = MYSQL_TYPE_STRING;
    binds[i].length = &lengths[i];
    binds[i].is_null = &nulls[i];
  }
  if (mysql_stmt_bind_result(statement, binds.data()) || mysql_stmt_store_result(statement) != 0) {
    throw_statement_error(statement);
  }
  std::vector<MysqlRow> rows;
  int status = 0;
  while ((status = mysql_stmt_fetch(statement)) == 0 || status == MYSQL_DATA_TRUNCATED) {
    MysqlRow& row = rows.emplace_back(columns);
    for (unsigned i = 0; i < columns; ++i) {
      if (nulls[i]) continue;
      row[i].emplace(lengths[i], '\0');
      if (lengths[i] == 0) continue;
      MYSQL_BIND one{};
      one.buffer_type = MYSQL_TYPE_STRING;
      one.buffer = row[i]->data();
      one.buffer_length = lengths[i];
      if (mysql_stmt_fetch_column(statement, &one, i, 0) != 0) throw_statement_error(statement);
    }
  }
  if (status != MYSQL_NO_DATA) throw_statement_error(statement);
  return rows;
}

}  // namespace

void MysqlStatement::prepare(MYSQL* connection, std::string_view sql) {
  connection_ = connection;
  sql_ = sql;
  if (prepare_again() == 0) return;
  if (statement_ == nullptr) throw_mysql_error(connection);
  const unsigned code = mysql_stmt_errno(statement_);
  const std::string text = mysql_stmt_error(statement_);
  close();
  throw_mysql_error(connection, code, text);
}

/// Returns false if the statement cannot be prepared.
bool MysqlStatement::try_prepare(MYSQL* connection, std::string_view sql) {
  connection_ = connection;
  sql_ = sql;
  if (prepare_again() == 0) return true;
  close();
  return false;
}

unsigned MysqlStatement::prepare_again() noexcept {
  close();
  statement_ = mysql_stmt_init(connection_);
  if (statement_ == nullptr) return mysql_errno(connection_);
  if (mysql_stmt_prepare(statement_, sql_.data(), static_cast<unsigned long>(sql_.size())) != 0) {
    return mysql_stmt_errno(statement_);
  }
  failed_behind_rows_ = false;
  bound_ = false;
  return 0;
}

void MysqlStatement::close() noexcept {
  if (statement_ != nullptr) mysql_stmt_close(statement_);
  statement_ = nullptr;
}

void MysqlStatement::set(std::span<const std::string_view> values) {
  constexpr std::size_t longest_copy = 1024;
  parameters_.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string_view value = values[i];
    Parameter& to = parameters_[i];
    to.is_null = value.data() == nullptr ? 1 : 0;
    to.length = static_cast<unsigned long>(value.size());
    const char* bytes = value.data();
    if (value.size() <= longest_copy) {
      if (value.size() > to.copy.size()) to.copy.resize(value.size());
      value.copy(to.copy.data(), value.size());
      bytes = to.copy.data();
    }
    if (bytes != std::exchange(to.bytes, bytes)) bound_ = false;
  }
}

/// Tells the client library where the values are. It then sends the types of the parameters with the next run, so the
/// statement binds again only if an address has changed.
bool MysqlStatement::bind() {
  std::vector<MYSQL_BIND> binds(parameters_.size());
  for (std::size_t i = 0; i < binds.size(); ++i) {
    binds[i].buffer_type = MYSQL_TYPE_BLOB;
    binds[i].buffer = const_cast<char*>(parameters_[i].bytes);  // NOLINT: the library only reads it
    binds[i].length = &parameters_[i].length;
    binds[i].is_null = &parameters_[i].is_null;
  }
  bound_ = binds.empty() || !mysql_stmt_bind_param(statement_, binds.data());
  return bound_;
}

unsigned MysqlStatement::try_run(std::span<const std::string_view> values) {
  if (failed_behind_rows_) {
    if (const unsigned error = prepare_again()) return error;
  }
  // The library reads as many values as the statement has question marks.
  if (mysql_stmt_param_count(statement_) != values.size()) {
    throw std::logic_error("txinbox: a prepared statement got another number of values than it takes");
  }
  set(values);
  if (!bound_ && !bind()) return mysql_stmt_errno(statement_);
  if (mysql_stmt_execute(statement_) == 0) return 0;
  bound_ = false;  // the server may not have read the types
  return mysql_stmt_errno(statement_);
}

MysqlReply MysqlStatement::take_reply() {
  MysqlReply reply;
  for (;;) {
    if (mysql_stmt_field_count(statement_) > 0) {
      failed_behind_rows_ = true;  // unless all results are read
      if (!reply.has_rows) reply.rows = fetch_all(statement_);
      reply.has_rows = true;
      mysql_stmt_free_result(statement_);
    }
    const int more = mysql_stmt_next_result(statement_);
    if (more > 0) throw_error();
    if (more < 0) break;
  }
  failed_behind_rows_ = false;
  return reply;
}

void MysqlStatement::throw_error() const {
  if (statement_ == nullptr) throw_mysql_error(connection_);
  throw_statement_error(statement_);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
