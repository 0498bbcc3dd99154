#include "backend/sqlite3/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "backend/database_error.hpp"
#include "backend/query.hpp"
#include "backend/script.hpp"
#include "backend/table_check.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

std::string quote(std::string_view text, char mark) {
  std::string quoted(1, mark);
  for (const char c : text) {
    if (c == mark) quoted += mark;
    quoted += c;
  }
  return quoted += mark;
}

/// Runs `sql`. While another process holds the lock, runs it again, for up to a minute. The session's own busy time-out
/// may be zero. It must not be changed, because that would replace a caller's busy handler.
void run_when_free(const NativeConnection& sql, const char* statement) {
  using namespace std::chrono_literals;
  const auto give_up = std::chrono::steady_clock::now() + 1min;
  for (;;) {
    try {
      sql.database().run(sql, statement);
      return;
    } catch (const DatabaseError&) {
      if (current_database_error()->error_class() != ErrorClass::lock_timeout ||
          std::chrono::steady_clock::now() > give_up)
        throw;
    }
    std::this_thread::sleep_for(10ms);
  }
}

class Sqlite3Catalog final : public Catalog {
 public:
  explicit Sqlite3Catalog(ConnectionPtr connection) : shared_(std::move(connection)), sql_(*shared_) {}

  /// Only the main database is searched, because a transaction on several files is not atomic in a crash.
  std::string find_schema(std::string_view table) override {
    return query_text(sql_, fmt::format("SELECT 'main' FROM main.sqlite_master WHERE name = {} AND type IN ('table', "
                                        "'view')",
                                        quote(table, '\'')));
  }

  std::vector<Problem> check_tables(const std::string&) override { return check_sqlite3_tables(sql_); }
  std::vector<Finding> check_server() override { return check_sqlite3_server(sql_); }

  std::string server_version() override { return query_text(sql_, "SELECT sqlite_version()"); }

  std::vector<Row> read(const std::string& text, std::size_t columns) override { return query(sql_, text, columns); }

  std::int64_t table_bytes(const std::string&) override {
    // dbstat is an optional part of SQLite.
    if (query(sql_, "SELECT name FROM pragma_module_list WHERE name = 'dbstat'", 1).empty()) return 0;
    return number_in(
        query_text(sql_, fmt::format("SELECT sum(pgsize) FROM dbstat('main', 1) WHERE name IN (SELECT name "
                                     "FROM main.sqlite_master WHERE tbl_name = '{}')",
                                     consumed_message_table)));
  }

  /// The statistics exist after ANALYZE. An index on a part of the rows has a smaller number.
  TableEstimate estimate(const std::string&) override {
    if (query(sql_, "SELECT name FROM main.sqlite_master WHERE name = 'sqlite_stat1'", 1).empty()) return {};
    TableEstimate found;
    for (const Row& row :
         query(sql_, fmt::format("SELECT stat FROM main.sqlite_stat1 WHERE tbl = '{}'", consumed_message_table), 1)) {
      found.rows = std::max<std::int64_t>(found.rows.value_or(0), number_in(row[0].value_or("")));
    }
    return found;
  }

  bool has_lease_index(const std::string&) override {
    return !query(sql_,
                  fmt::format("SELECT name FROM main.sqlite_master WHERE type = 'index' AND tbl_name = '{}' AND name = "
                              "'{}'",
                              consumed_message_table, lease_index),
                  1)
                .empty();
  }

  void begin_migrations() override { run_when_free(sql_, "BEGIN IMMEDIATE"); }
  void apply(std::string_view sql) override { run_script(sql_, sql); }
  void end_migrations() override { run_when_free(sql_, "COMMIT"); }

  void abandon_migrations() noexcept override { try_roll_back(sql_); }

 private:
  const ConnectionPtr shared_;
  const NativeConnection& sql_;
};

}  // namespace

std::unique_ptr<Catalog> make_sqlite3_catalog(ConnectionPtr connection) {
  return std::make_unique<Sqlite3Catalog>(std::move(connection));
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
