#include "torture/storm_pool.hpp"

#include <algorithm>

#include "backend/database.hpp"
#include "soci_adapter/soci_connection.hpp"
#include "torture/scratch_sql.hpp"

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

}  // namespace

std::chrono::milliseconds worker_lock_timeout(const backend::Database& database) {
  return scratch_sql_of(database).has_one_writer ? 400ms : 2s;
}

Pool open_worker_pool(const cli::DatabaseOption& option, const std::string& name, std::size_t connections) {
  const auto& database = option.database();
  return open_pool(option.url(), {.connections = connections,
                                  .acquire_timeout = 10s,
                                  .connect_timeout = 5s,
                                  .lock_timeout = worker_lock_timeout(database),
                                  .statement_timeout = 10s,
                                  .on_connect = [name](soci::session& session) {
                                    const auto connection = backend::connection_of(session);
                                    connection->database().hide_notices(*connection);
                                    connection->database().name_session(*connection, name);
                                  }});
}

std::vector<std::string> databases_of_relays(soci::session& sql, const cli::DatabaseOption& option) {
  const std::string url = option.url();
  std::vector<std::string> urls;
  const std::size_t query = std::min(url.find('?'), url.size());
  const std::size_t name = url.rfind('/', query) + 1;
  for (const std::string& shard : shards_of(sql)) urls.push_back(url.substr(0, name) + shard + url.substr(query));
  if (urls.empty()) urls.push_back(url);
  return urls;
}

Pool open_parent_pool(const cli::DatabaseOption& option) {
  return open_pool(option.url(), {.connections = 1,
                                  .connect_timeout = 5s,
                                  .lock_timeout = 10s,
                                  .statement_timeout = 10min,
                                  .idle_transaction_timeout = 10min,
                                  .on_connect = [](soci::session& session) {
                                    const auto connection = backend::connection_of(session);
                                    connection->database().hide_notices(*connection);
                                  }});
}

}  // namespace txinbox::torture
