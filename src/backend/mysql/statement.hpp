#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/mysql/native.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// A statement that the server keeps prepared. It can be a compound one, which then costs its server
/// no parsing. Ends with its connection, after which it may only be destroyed.
///
/// When a compound one fails behind rows that it gave, the client library goes on believing that it gives
/// rows. It is prepared anew before it runs again.
class MysqlStatement {
 public:
  MysqlStatement() = default;
  ~MysqlStatement() { close(); }
  MysqlStatement(const MysqlStatement&) = delete;
  MysqlStatement& operator=(const MysqlStatement&) = delete;

  bool prepared() const noexcept { return statement_ != nullptr; }
  void prepare(MYSQL* connection, std::string_view sql);
  void close() noexcept;

  /// Runs it with these values, as bytes of no character set; a null pointer is NULL. Returns the
  /// error's number, 0 for none. `take_reply` must follow unless it failed.
  unsigned try_run(std::span<const std::string_view> values = {}) noexcept;

  struct Reply {
    bool has_rows = false;             ///< There was a result, maybe an empty one.
    std::optional<MysqlRow> row = {};  ///< Its first row.
  };

  /// Reads what the last run gave to its end.
  Reply take_reply();

  /// Throws the last error as SOCI's kind of exception.
  [[noreturn]] void throw_error() const;

 private:
  unsigned try_prepare() noexcept;

  MYSQL* connection_ = nullptr;
  std::string sql_;
  MYSQL_STMT* statement_ = nullptr;
  bool failed_behind_rows_ = false;
};

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
