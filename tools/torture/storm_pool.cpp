#include "torture/storm_pool.hpp"

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
