#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/postgresql/native.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

/// A parameter, sent in binary format: text and bytea as they are, a uuid as its 16 bytes. A null pointer is NULL.
using PostgresqlValue = std::string_view;

/// Several statements in one round trip (libpq's pipeline mode). One Sync message follows them, so the server does not
/// run the statements after the first that fails.
class PostgresqlPipeline {
 public:
  /// Drops results that nobody has read on the connection.
  explicit PostgresqlPipeline(PGconn* connection);
  ~PostgresqlPipeline();
  PostgresqlPipeline(const PostgresqlPipeline&) = delete;
  PostgresqlPipeline& operator=(const PostgresqlPipeline&) = delete;

  /// Errors: a broken connection, as SOCI's kind of exception.
  void add(const char* sql, std::span<const PostgresqlValue> values = {});
  void add_prepared(const char* name, std::span<const PostgresqlValue> values = {});
  void add_preparation(const char* name, const char* sql);

  /// Adds what `send` sends: one statement, by a function of libpq whose result it returns.
  template <class Send>
  void add_sent(Send&& send) {
    sent(send());
    ++statements_;
  }

  /// Sends the statements and returns a result for each: the error of the first that failed, and PGRES_PIPELINE_ABORTED
  /// for those after it. It returns fewer results if the connection is lost.
  std::vector<PostgresqlResult> run();

  /// The same, and calls `each` with each result as it comes.
  template <class Each>
  void run(Each&& each) {
    begin_reading();
    for (std::size_t i = 0; i < statements_; ++i) {
      PostgresqlResult result = next_statement();
      if (!result) return;  // the connection broke at the one before
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

/// Runs the pipeline that `fill` fills.
template <class F>
std::vector<PostgresqlResult> run_pipeline(PGconn* connection, F&& fill) {
  PostgresqlPipeline pipeline(connection);
  fill(pipeline);
  return pipeline.run();
}

/// Throws unless all of the statements that were sent have succeeded.
void require_all(PGconn*, const std::vector<PostgresqlResult>& results, std::size_t sent);

/// Whether a prepared statement was not there: a pooler or a handler's DEALLOCATE has removed it.
bool lost_statements(const std::vector<PostgresqlResult>& results);

/// Whether the statement changed one row.
bool changed_one(const PostgresqlResult& result);

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
