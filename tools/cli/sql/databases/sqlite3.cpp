#include <fmt/format.h>

#include "backend/query.hpp"
#include "backend/sqlite3/real_number.hpp"
#include "backend/sqlite3/statement.hpp"
#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {
namespace {

using namespace backend;

// If a value is used in two places, both places use one parameter.
std::string sqlite3_text(const SqlStatement& statement) {
  return joined(statement, [&](std::size_t i) { return fmt::format("?{}", statement.values[i] + 1); });
}

class Sqlite3UserStatement final : public UserStatement {
 public:
  Sqlite3UserStatement(::sqlite3* connection, const SqlStatement& statement)
      : statement_(connection, sqlite3_text(statement)), values_(statement.values) {}

  bool run(std::span<const SqlValue> values) override {
    for (const std::size_t at : values_) bind(static_cast<int>(at) + 1, values[at]);
    statement_.run();
    return false;
  }

 private:
  void bind(int position, const SqlValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      statement_.bind_text(position, *text);
    } else if (const auto* number = std::get_if<SqlNumber>(&value)) {
      if (const auto real = sqlite3_real(number->text)) {
        statement_.bind_real(position, *real);
      } else {
        statement_.bind_text(position, number->text);
      }
    } else if (const auto* integer = std::get_if<long long>(&value)) {
      statement_.bind_integer(position, *integer);
    } else if (const auto* boolean = std::get_if<bool>(&value)) {
      statement_.bind_integer(position, *boolean ? 1 : 0);
    } else {
      statement_.bind_null(position);
    }
  }

  Sqlite3Statement statement_;
  const std::vector<std::size_t> values_;
};

class Sqlite3UserSql final : public UserSql {
 public:
  SqlSyntax default_syntax() const override {
    return {.backquoted_names = true, .bracketed_names = true, .own_placeholders = "?@#$"};
  }

  void check(const NativeConnection& sql, const SqlStatement& statement) const override {
    const Sqlite3Statement checked(sqlite3_native(sql), sqlite3_text(statement));
  }

  SqlVerdict classify_check_error(const DatabaseError& error, const SqlStatement&) const noexcept override {
    return number_in(error.code()) == SQLITE_ERROR ? SqlVerdict::wrong : SqlVerdict::unknown;
  }

  std::unique_ptr<UserStatement> prepare(const NativeConnection& sql, const SqlStatement& statement,
                                         Runs) const override {
    return std::make_unique<Sqlite3UserStatement>(sqlite3_native(sql), statement);
  }
};

}  // namespace

const UserSql& sqlite3_user_sql() noexcept {
  static const Sqlite3UserSql sql;
  return sql;
}

}  // namespace txinbox::cli
