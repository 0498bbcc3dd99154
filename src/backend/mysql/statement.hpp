#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/mysql/native.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// A statement that the server keeps prepared. A compound statement is also possible: the server then does not parse it
/// again. The statement ends with its connection. After that it may only be prepared again or destroyed.
///
/// If a compound statement fails after it has returned rows, the client library still expects rows from it. So the
/// statement is prepared again before its next run.
class MysqlStatement {
 public:
  MysqlStatement() = default;
  ~MysqlStatement() { close(); }
  MysqlStatement(const MysqlStatement&) = delete;
  MysqlStatement& operator=(const MysqlStatement&) = delete;

  bool prepared() const noexcept { return statement_ != nullptr; }

  /// Whether the statement is prepared on this connection, as far as the client library knows.
  bool prepared_on(const MYSQL* connection) const noexcept {
    return statement_ != nullptr && statement_->mysql == connection;
  }
  void prepare(MYSQL* connection, std::string_view sql);
  bool try_prepare(MYSQL* connection, std::string_view sql);
  void close() noexcept;

  /// Closes the statement, unless its connection has results that are not read yet: closing would discard them. The
  /// connection then keeps the statement to its end.
  void close_if_idle() noexcept {
    if (statement_ != nullptr && has_unread_results(statement_->mysql)) statement_ = nullptr;
    close();
  }

  /// Runs the statement. The values are sent as bytes without a character set. A null pointer is NULL. Returns the
  /// number of the error, or 0. After a success, call `take_reply`.
  unsigned try_run(std::span<const std::string_view> values = {});

  /// The effect of the last run. Call these before `take_reply`.
  std::size_t affected_rows() const noexcept { return static_cast<std::size_t>(mysql_stmt_affected_rows(statement_)); }
  std::int64_t insert_id() const noexcept { return static_cast<std::int64_t>(mysql_stmt_insert_id(statement_)); }

  /// Reads everything that the last run has returned.
  MysqlReply take_reply();

  /// Throws the last error.
  [[noreturn]] void throw_error() const;

 private:
  static bool has_unread_results(const MYSQL* connection) noexcept {
    return connection != nullptr &&
           (connection->status != MYSQL_STATUS_READY || (connection->server_status & SERVER_MORE_RESULTS_EXIST) != 0);
  }

  /// The value of a parameter. The client library has the addresses of all members.
  struct Parameter {
    std::string copy;  ///< A short value is copied to it, so its address seldom changes. It never gets shorter.
    const char* bytes = nullptr;
    unsigned long length = 0;
    MysqlFlag is_null = 0;
  };

  unsigned prepare_again() noexcept;
  void set(std::span<const std::string_view> values);
  bool bind();

  MYSQL* connection_ = nullptr;
  std::string sql_;
  MYSQL_STMT* statement_ = nullptr;
  std::vector<Parameter> parameters_;
  bool bound_ = false;  ///< To `parameters_`.
  bool failed_behind_rows_ = false;
};

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
