#include "backend/mysql/parts.hpp"

#include <utility>

#include <fmt/format.h>

#include "backend/mysql/native.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

// UTC_TIMESTAMP is the time at which the statement began. SYSDATE is the time at which the server evaluates it, in the
// session's time zone. NOW is the time of UTC_TIMESTAMP in the session's time zone. So the difference between NOW and
// UTC_TIMESTAMP is the offset of the time zone from UTC.
//
// If summer time begins or ends while the statement waits, this offset changes: SYSDATE moves relative to NOW by one
// hour, in some zones by half an hour. This expression corrects that. It is right for a statement that runs for at most
// a quarter of an hour. If the expression names the time zone, it is also right in UTC, for any time: the sessions of a
// pool are in UTC. If NOW and SYSDATE differ by more than two hours, the session has stopped its clock (SET timestamp).
std::string evaluated_now(std::string_view in_utc) {
  return fmt::format(
      "(SYSDATE(6) + INTERVAL TIMESTAMPDIFF(SECOND, NOW(6), UTC_TIMESTAMP(6)) - "
      "IF({}ABS(TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6))) > 7200, 0, "
      "1800 * ROUND(TIMESTAMPDIFF(SECOND, NOW(6), SYSDATE(6)) / 1800)) SECOND)",
      in_utc);
}

/// Returns the expression. A dialect is made for each run of a statement that is not prepared.
const std::string& now_expression(bool names_time_zone) {
  static const std::string with_zone = evaluated_now("@@time_zone = '+00:00' OR ");
  static const std::string without_zone = evaluated_now("");
  return names_time_zone ? with_zone : without_zone;
}

class MysqlDialect : public Dialect {
 public:
  explicit MysqlDialect(std::string schema, bool names_time_zone = true)
      : schema_(std::move(schema)), now_(now_expression(names_time_zone)) {}

  std::string table(std::string_view name) const override {
    return fmt::format("{}.`{}`", quoted_identifier(schema_), name);
  }

  std::string text(std::string_view value) const override { return hex_literal(value); }
  std::string bytes(std::string_view value) const override { return hex_literal(value); }
  std::string token(const detail::Token& value) const override { return hex_literal(value.bytes()); }
  // The server would compare a number with text as two floating-point numbers.
  std::string parameter(ParameterType type, int /*position*/) const override {
    return type == ParameterType::integer ? "CAST(? AS SIGNED)" : "?";
  }

  std::string now() const override { return now_; }
  using Dialect::now_plus;
  std::string now_plus(std::string_view milliseconds) const override {
    return fmt::format("{} + INTERVAL {} * 0.001 SECOND", now_, milliseconds);
  }
  std::string now_in_microseconds() const override {
    return fmt::format("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})", now_);
  }
  std::string before(std::chrono::milliseconds age) const override {
    return fmt::format("UTC_TIMESTAMP(6) - INTERVAL {} * 0.001 SECOND", age.count());
  }

  std::string_view past_snapshot() const override { return " LOCK IN SHARE MODE"; }

  std::string milliseconds_since(std::string_view column) const override {
    return fmt::format("FLOOR(TIMESTAMPDIFF(MICROSECOND, {}, {}) / 1000)", column, now_);
  }

  std::string utc_text(std::string_view column) const override {
    return fmt::format("DATE_FORMAT({}, '%Y-%m-%d %H:%i:%s.%f')", column);
  }

  std::string time(std::string_view exact) const override { return fmt::format("TIMESTAMP'{}'", exact); }

  std::string hex_text(std::string_view column) const override { return fmt::format("HEX({})", column); }

  // Without the hint, a server with old statistics of the table reads all rows of a range of the primary key.
  std::string by_index(std::string_view name) const override { return fmt::format(" FORCE INDEX ({})", name); }

  // It is empty, because INSERT IGNORE would hide other errors, too.
  std::string unless_exists(std::string_view /*key*/) const override { return {}; }

  // InnoDB never gives a number that a row has. So the conflict is on the other unique index, the one on `key`.
  std::string update_existing(std::string_view /*key*/, std::span<const std::string_view> columns) const override {
    std::string end = " ON DUPLICATE KEY UPDATE ";
    for (const std::string_view column : columns) {
      end += fmt::format("{0}{1} = VALUES({1})", column == columns.front() ? "" : ", ", column);
    }
    return end;
  }

  std::string new_number(std::string_view column) const override { return fmt::format("VALUES({})", column); }

  // With LAST_INSERT_ID, the server reports the number as the insert id. MariaDB has RETURNING, but not for UPDATE.
  // MySQL does not have it.
  std::string marked(std::string_view number) const override { return fmt::format("LAST_INSERT_ID({})", number); }
  std::string returning(std::string_view /*number*/) const override { return ""; }

  std::string greater(std::string_view a, std::string_view b) const override {
    return fmt::format("GREATEST({}, {})", a, b);
  }

 private:
  const std::string schema_;
  const std::string& now_;
};

/// For one run of a statement that is not prepared: each parameter is a literal.
class MysqlTextDialect final : public MysqlDialect {
 public:
  MysqlTextDialect(std::string schema, std::span<const Parameter> values)
      : MysqlDialect(std::move(schema)), values_(values) {}

  std::string parameter(ParameterType type, int position) const override {
    const std::string_view value = values_[static_cast<std::size_t>(position - 1)].value;
    if (value.data() == nullptr) return "NULL";
    return type == ParameterType::integer ? std::string(value) : hex_literal(value);
  }

 private:
  const std::span<const Parameter> values_;
};

}  // namespace

std::unique_ptr<Dialect> make_mysql_dialect(std::string schema, bool names_time_zone) {
  return std::make_unique<MysqlDialect>(std::move(schema), names_time_zone);
}

std::string mysql_text(const KeptStatement& statement, const std::string& schema, std::span<const Parameter> values) {
  return statement.sql(MysqlTextDialect(schema, values));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
