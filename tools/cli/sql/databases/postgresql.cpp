#include <atomic>
#include <utility>

#include <fmt/format.h>
#include <txinbox/error.hpp>

#include "backend/postgresql/native.hpp"
#include "backend/postgresql/pipeline.hpp"
#include "cli/sql/user_sql.hpp"

namespace txinbox::cli {
namespace {

using namespace backend;

// Each place of a value is a parameter of its own, so the server finds a type for each.
std::string postgresql_text(const SqlStatement& statement) {
  return joined(statement, [](std::size_t i) { return fmt::format("${}", i + 1); });
}

/// The values as text, because libpq expects them so. NULL is a null pointer.
class TextParameters {
 public:
  TextParameters(const SqlStatement& statement, std::span<const SqlValue> values) {
    numbers_.reserve(statement.values.size());  // because `texts_` points into it
    texts_.reserve(statement.values.size());
    for (const std::size_t at : statement.values) texts_.push_back(text_of_value(values[at]));
  }

  int count() const noexcept { return static_cast<int>(texts_.size()); }
  const char* const* texts() const noexcept { return texts_.data(); }

 private:
  const char* text_of_value(const SqlValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) return text->c_str();
    if (const auto* number = std::get_if<SqlNumber>(&value)) return number->text.c_str();
    if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
    if (const auto* integer = std::get_if<long long>(&value)) {
      return numbers_.emplace_back(std::to_string(*integer)).c_str();
    }
    return nullptr;
  }

  std::vector<std::string> numbers_;
  std::vector<const char*> texts_;
};

/// Sends something with `send` and returns its last result.
template <class Send>
PostgresqlResult exchange(PGconn* pg, Send&& send) {
  end_open_commands(pg);
  if (send() == 0) throw_postgresql_error(pg, nullptr);
  PostgresqlResult last;
  bool is_copy = false;
  while (PostgresqlResult next = next_result(pg)) {
    is_copy = is_copy || begins_copy(next.get());
    last = std::move(next);
  }
  if (is_copy) {
    throw Error(ErrorCode::invalid_argument,
                "COPY FROM STDIN and COPY TO STDOUT cannot run here, because they need the functions of libpq");
  }
  if (!succeeded(last.get())) throw_postgresql_error(pg, last.get());
  return last;
}

/// Can send a run of itself, inside or outside a pipeline.
class PostgresqlUserStatement : public UserStatement {
 public:
  /// Returns the result of libpq's function: 0 is an error.
  virtual int send(std::span<const SqlValue> values) = 0;
};

bool has_columns(const PostgresqlResult& result) { return PQresultStatus(result.get()) == PGRES_TUPLES_OK; }

class SentOnce final : public PostgresqlUserStatement {
 public:
  SentOnce(PGconn* pg, SqlStatement statement)
      : pg_(pg), statement_(std::move(statement)), text_(postgresql_text(statement_)) {}

  bool run(std::span<const SqlValue> values) override {
    if (statement_.values.empty()) return has_columns(exec(pg_, text_));
    return has_columns(exchange(pg_, [&] { return send(values); }));
  }

  int send(std::span<const SqlValue> values) override {
    const TextParameters p(statement_, values);
    return PQsendQueryParams(pg_, text_.c_str(), p.count(), nullptr, p.texts(), nullptr, nullptr, 0);
  }

 private:
  PGconn* const pg_;
  const SqlStatement statement_;
  const std::string text_;
};

std::string next_name() {
  static std::atomic<unsigned> count = 0;
  return fmt::format("command_{}", ++count);
}

class Kept final : public PostgresqlUserStatement {
 public:
  Kept(PGconn* pg, SqlStatement statement) : pg_(pg), statement_(std::move(statement)) {
    const std::string text = postgresql_text(statement_);
    exchange(pg_, [&] { return PQsendPrepare(pg_, name_.c_str(), text.c_str(), 0, nullptr); });
  }
  ~Kept() override { try_exec(pg_, "DEALLOCATE " + name_); }

  // The statement has no columns in its result. A statement with columns would always fail after their type changes.
  bool run(std::span<const SqlValue> values) override {
    return has_columns(exchange(pg_, [&] { return send(values); }));
  }

  int send(std::span<const SqlValue> values) override {
    const TextParameters p(statement_, values);
    return PQsendQueryPrepared(pg_, name_.c_str(), p.count(), p.texts(), nullptr, nullptr, 0);
  }

 private:
  PGconn* const pg_;
  const SqlStatement statement_;
  const std::string name_ = next_name();
};

class PostgresqlUserSql final : public UserSql {
 public:
  SqlSyntax default_syntax() const override {
    return {.escape_text = true, .dollar_quotes = true, .nested_comments = true, .casts = true, .assignments = true};
  }

  SqlSyntax syntax(const NativeConnection& sql) const override {
    SqlSyntax found = default_syntax();
    found.backslash_escapes = query_text(sql, "SHOW standard_conforming_strings") == "off";
    return found;
  }

  SqlLimits limits(const NativeConnection&) const override {
    return {.why_no_nul = "PostgreSQL has no text with NUL in it"};
  }

  std::string refusal(std::span<const std::string> words) const override {
    return words.front() == "COPY" ? "COPY is not supported; write INSERT" : "";
  }

  // The check uses the unnamed statement, because a pooler need not keep it apart for each client.
  void check(const NativeConnection& sql, const SqlStatement& statement) const override {
    PGconn* pg = postgresql_native(sql);
    const std::string text = postgresql_text(statement);
    exchange(pg, [&] { return PQsendPrepare(pg, "", text.c_str(), 0, nullptr); });
  }

  // 42: syntax error or access rule violation.
  SqlVerdict classify_check_error(const DatabaseError& error, const SqlStatement&) const noexcept override {
    return error.code().starts_with("42") ? SqlVerdict::wrong : SqlVerdict::unknown;
  }

  std::unique_ptr<UserStatement> prepare(const NativeConnection& sql, const SqlStatement& statement,
                                         Runs runs) const override {
    PGconn* pg = postgresql_native(sql);
    if (runs == Runs::once) return std::make_unique<SentOnce>(pg, statement);
    return std::make_unique<Kept>(pg, statement);
  }

  // This limits how many bytes this process keeps that the server has not yet read.
  std::size_t most_together(const NativeConnection&, const SqlLimits&) const override { return 1024UL * 1024; }

  void run_together(const NativeConnection& sql, std::span<UserRun> runs) const override {
    PGconn* pg = postgresql_native(sql);
    PostgresqlResult failed;
    std::size_t done = 0;
    {
      PostgresqlPipeline pipeline(pg);
      for (const UserRun& each : runs) {
        auto& statement = static_cast<PostgresqlUserStatement&>(*each.statement);  // `prepare` made an object of this
                                                                                   // type
        pipeline.add_sent([&] { return statement.send(each.values); });
      }
      pipeline.run([&](PostgresqlResult result) {  // drop the rows after each result
        runs[done++].prepare_anew = has_columns(result);
        if (!failed && !succeeded(result.get())) failed = std::move(result);
      });
    }
    if (failed || done < runs.size()) throw_postgresql_error(pg, failed.get());
  }
};

}  // namespace

const UserSql& postgresql_user_sql() noexcept {
  static const PostgresqlUserSql sql;
  return sql;
}

}  // namespace txinbox::cli
