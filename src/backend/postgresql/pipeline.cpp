#include "backend/postgresql/pipeline.hpp"

#include <algorithm>
#include <string_view>

#include <array>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

constexpr std::size_t max_values = 9;
constexpr int binary = 1;

/// The arrays that libpq needs for parameters.
struct BinaryParameters {
  explicit BinaryParameters(std::span<const PostgresqlValue> values) : count(static_cast<int>(values.size())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      data.at(i) = values[i].data();
      lengths.at(i) = static_cast<int>(values[i].size());
      formats.at(i) = binary;
    }
  }
  int count;
  std::array<const char*, max_values> data{};
  std::array<int, max_values> lengths{};
  std::array<int, max_values> formats{};
};

}  // namespace

PostgresqlPipeline::PostgresqlPipeline(PGconn* connection) : connection_(connection) {
  end_open_commands(connection_);
  sent(PQenterPipelineMode(connection_));
}

PostgresqlPipeline::~PostgresqlPipeline() { PQexitPipelineMode(connection_); }

void PostgresqlPipeline::sent(int ok) {
  if (ok == 0) throw_postgresql_error(connection_, nullptr);
}

void PostgresqlPipeline::add(const char* sql, std::span<const PostgresqlValue> values) {
  const BinaryParameters p(values);
  sent(PQsendQueryParams(connection_, sql, p.count, nullptr, p.data.data(), p.lengths.data(), p.formats.data(), 0));
  ++statements_;
}

void PostgresqlPipeline::add_prepared(const char* name, std::span<const PostgresqlValue> values) {
  const BinaryParameters p(values);
  sent(PQsendQueryPrepared(connection_, name, p.count, p.data.data(), p.lengths.data(), p.formats.data(), 0));
  ++statements_;
}

void PostgresqlPipeline::add_preparation(const char* name, const char* sql) {
  sent(PQsendPrepare(connection_, name, sql, 0, nullptr));
  ++statements_;
}

std::vector<PostgresqlResult> PostgresqlPipeline::run() {
  std::vector<PostgresqlResult> results;
  results.reserve(statements_);
  run([&](PostgresqlResult result) { results.push_back(std::move(result)); });
  return results;
}

void PostgresqlPipeline::begin_reading() { sent(PQpipelineSync(connection_)); }

PostgresqlResult PostgresqlPipeline::next_statement() {
  PostgresqlResult result = next_result(connection_);
  while (result && next_result(connection_)) {  // each statement's results end with a null
  }
  return result;
}

void PostgresqlPipeline::end_reading() {
  while (const PostgresqlResult sync = next_result(connection_)) {
    if (PQresultStatus(sync.get()) == PGRES_PIPELINE_SYNC) break;
  }
}

void require_all(PGconn* connection, const std::vector<PostgresqlResult>& results, std::size_t sent) {
  for (const PostgresqlResult& each : results) {
    if (!succeeded(each.get())) throw_postgresql_error(connection, each.get());
  }
  if (results.size() < sent) throw_postgresql_error(connection, nullptr);
}

bool lost_statements(const std::vector<PostgresqlResult>& results) {
  constexpr std::string_view invalid_sql_statement_name = "26000";
  return std::ranges::any_of(
      results, [&](const PostgresqlResult& each) { return sqlstate(each.get()) == invalid_sql_statement_name; });
}

bool is_outdated(const PostgresqlResult& result) {
  constexpr std::string_view feature_not_supported = "0A000";
  return sqlstate(result.get()) == feature_not_supported;
}

bool changed_one(const PostgresqlResult& result) { return std::string_view(PQcmdTuples(result.get())) == "1"; }

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
