#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/postgresql/native.hpp"
#include "base/private_api.hpp"

namespace txinbox {
TXINBOX_PRIVATE_API_BEGIN
namespace backend {

/// A parameter in binary format: text and bytea without change, a uuid as its 16 bytes. A null pointer is NULL.
using PostgresqlValue = std::string_view;

/// Several statements in one round trip (libpq's pipeline mode). One Sync message follows them, so if a statement
/// fails, the server does not run the statements after it.
class PostgresqlPipeline {
 public:
  /// Drops the unread results on the connection.
  explicit PostgresqlPipeline(PGconn* connection);
  ~PostgresqlPipeline();
  PostgresqlPipeline(const PostgresqlPipeline&) = delete;
  PostgresqlPipeline& operator=(const PostgresqlPipeline&) = delete;

  /// Errors: an error of a broken connection, as SOCI's kind of exception.
  void add(const char* sql, std::span<const PostgresqlValue> values = {});
  void add_prepared(const char* name, std::span<const PostgresqlValue> values = {});
  void add_preparation(const char* name, const char* sql);

  /// Adds one statement. `send` calls a function of libpq that sends it, and returns the function's result.
  template <class Send>
  void add_sent(Send&& send) {
    sent(send());
    ++statements_;
  }

  /// Sends the statements and returns one result for each. The result is the error for the first statement that failed,
  /// and PGRES_PIPELINE_ABORTED for those after it. If the connection is lost, it returns fewer results.
  std::vector<PostgresqlResult> run();

  /// Does the same, and calls `each` with each result as soon as it comes.
  template <class Each>
  void run(Each&& each) {
    begin_reading();
    for (std::size_t i = 0; i < statements_; ++i) {
      PostgresqlResult result = next_statement();
      if (!result) return;  // the connection broke during the statement before
      each(std::move(result));
    }
    end_reading();
  }

 private:
  void begin_reading();
  PostgresqlResult next_statement();
  void end_reading();
  void sent(int ok);

  PGconn* connection_;
  std::size_t statements_ = 0;
};

/// Runs the pipeline to which `fill` adds statements.
template <class F>
std::vector<PostgresqlResult> run_pipeline(PGconn* connection, F&& fill) {
  PostgresqlPipeline pipeline(connection);
  fill(pipeline);
  return pipeline.run();
}

/// Throws unless all `sent` statements have succeeded.
void require_all(PGconn*, const std::vector<PostgresqlResult>& results, std::size_t sent);

/// Whether a prepared statement was missing, because a pooler or a handler's DEALLOCATE has removed it.
bool lost_statements(const std::vector<PostgresqlResult>& results);

/// Whether a prepared statement no longer fits its tables, because the type of a column has changed.
bool is_outdated(const PostgresqlResult& result);

/// Whether the statement changed exactly one row.
bool changed_one(const PostgresqlResult& result);

}  // namespace backend
TXINBOX_PRIVATE_API_END
}  // namespace txinbox
