#include "sim/database/dialect.hpp"

#include <string_view>

#include <fmt/format.h>

#include "backend/registry.hpp"

namespace txinbox::sim {

namespace {

constexpr std::string_view ignore_mark = " /* unless it exists */";
constexpr std::string_view replace_mark = " /* or replace */";

class SimDialect final : public backend::Dialect {
 public:
  explicit SimDialect(const Personality& personality) : personality_(personality) {}

  std::string table(std::string_view name) const override { return sqlite3_->table(name); }
  std::string text(std::string_view value) const override { return sqlite3_->text(value); }
  std::string bytes(std::string_view value) const override { return sqlite3_->bytes(value); }
  std::string token(const detail::Token& value) const override { return sqlite3_->token(value); }
  std::string parameter(backend::ParameterType type, int position) const override {
    return sqlite3_->parameter(type, position);
  }
  std::string hex_text(std::string_view column) const override { return sqlite3_->hex_text(column); }
  std::string greater(std::string_view a, std::string_view b) const override { return sqlite3_->greater(a, b); }

  std::string now() const override { return "sim_now(0)"; }
  using Dialect::now_plus;
  std::string now_plus(std::string_view milliseconds) const override {
    return fmt::format("sim_now({})", milliseconds);
  }
  std::string now_in_microseconds() const override { return "(sim_since('1970-01-01 00:00:00.000000') * 1000)"; }
  std::string before(std::chrono::milliseconds age) const override { return fmt::format("sim_now({})", -age.count()); }
  std::string milliseconds_since(std::string_view column) const override {
    return fmt::format("sim_since({})", column);
  }
  std::string utc_text(std::string_view column) const override { return std::string(column); }
  std::string exact_time(std::string_view column) const override { return sqlite3_->exact_time(column); }
  std::string time(std::string_view exact) const override { return sqlite3_->time(exact); }

  std::string unless_exists(std::string_view /*key*/) const override { return std::string(ignore_mark); }
  std::string update_existing(std::string_view /*key*/, std::span<const std::string_view> /*columns*/) const override {
    return std::string(replace_mark);
  }
  std::string replace_existing(std::string_view /*key*/, std::string_view /*number*/,
                               std::span<const std::string_view> /*columns*/) const override {
    return std::string(replace_mark);
  }

  std::string marked(std::string_view number) const override { return fmt::format("sim_mark({})", number); }
  std::string returning(std::string_view /*number*/) const override { return {}; }

  std::string open_writers(std::string_view table) const override {
    if (!personality_.shows_writers) return {};
    return fmt::format("SELECT {}, w.value, 0 FROM (SELECT 1) s LEFT JOIN json_each(sim_writers({})) w ON 1",
                       server_number(table), text(table));
  }
  std::string server_number(std::string_view) const override {
    return personality_.shows_writers ? "sim_server()" : "0";
  }

 private:
  const Personality& personality_;
  const std::unique_ptr<backend::Dialect> sqlite3_ = backend::database_named("sqlite3").dialect("");
};

}  // namespace

std::unique_ptr<backend::Dialect> make_sim_dialect(const Personality& personality) {
  return std::make_unique<SimDialect>(personality);
}

std::string resolve_conflict_mark(const std::string& sql) {
  constexpr std::string_view insert = "INSERT";
  for (const auto& [mark, word] : {std::pair(ignore_mark, " OR IGNORE"), std::pair(replace_mark, " OR REPLACE")}) {
    if (!sql.ends_with(mark)) continue;
    return sql.substr(0, insert.size()) + word + sql.substr(insert.size(), sql.size() - insert.size() - mark.size());
  }
  return sql;
}

}  // namespace txinbox::sim
