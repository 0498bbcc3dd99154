#include "backend/sqlite3/parts.hpp"

#include <fmt/format.h>

#include "base/hex.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::string quoted(std::string_view text) {
  std::string quoted(1, '\'');
  for (const char c : text) {
    if (c == '\'') quoted += c;
    quoted += c;
  }
  return quoted += '\'';
}

std::string shifted_now(std::string_view milliseconds) {
  return fmt::format("strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', {} / 1000.0))", milliseconds);
}

class Sqlite3Dialect final : public Dialect {
 public:
  /// Only the main database is used, because a transaction on several files is not atomic in a crash.
  std::string table(std::string_view name) const override { return fmt::format("main.\"{}\"", name); }

  std::string text(std::string_view value) const override { return quoted(value); }
  std::string bytes(std::string_view value) const override { return fmt::format("x'{}'", detail::to_hex(value)); }
  std::string token(const detail::Token& value) const override { return bytes(value.bytes()); }

  // An expression has no type to which SQLite would convert a text before it compares them.
  std::string parameter(ParameterType type, int position) const override {
    return type == ParameterType::integer ? fmt::format("CAST(?{} AS INTEGER)", position)
                                          : fmt::format("?{}", position);
  }

  // SQLite evaluates 'now' once, at its first use in a statement. In a write, this is after the wait for the lock.
  std::string now() const override { return "strftime('%Y-%m-%d %H:%M:%f', 'now')"; }
  // 'now' has whole milliseconds, rounded down. Without one more, it would reach the time too early.
  using Dialect::now_plus;
  std::string now_plus(std::string_view milliseconds) const override {
    return shifted_now(fmt::format("({} + 1)", milliseconds));
  }
  std::string now_in_microseconds() const override {
    return "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000";
  }
  std::string before(std::chrono::milliseconds age) const override { return shifted_now(std::to_string(-age.count())); }

  std::string milliseconds_since(std::string_view column) const override {
    return fmt::format("CAST(round((julianday('now') - julianday({})) * 86400000.0) AS INTEGER)", column);
  }

  std::string utc_text(std::string_view column) const override {
    // The column already has this form, but with three decimals of a second or none.
    return fmt::format("substr({0} || substr('.000000', length({0}) - 18), 1, 26)", column);
  }

  // The column can have three decimals of a second or none, and SQLite compares its text.
  std::string exact_time(std::string_view column) const override { return fmt::format("({} || '')", column); }
  std::string time(std::string_view exact) const override { return quoted(exact); }

  // hex(NULL) returns an empty text.
  std::string hex_text(std::string_view column) const override {
    return fmt::format("CASE WHEN {0} IS NOT NULL THEN hex({0}) END", column);
  }

  std::string greater(std::string_view a, std::string_view b) const override {
    return fmt::format("max({}, {})", a, b);
  }
};

}  // namespace

std::unique_ptr<Dialect> make_sqlite3_dialect() { return std::make_unique<Sqlite3Dialect>(); }

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
