#include "torture/storm_pool.hpp"

#include <soci/soci.h>

namespace txinbox::torture {
namespace {

using namespace std::chrono_literals;

}  // namespace

std::chrono::milliseconds worker_lock_timeout(cli::Database database) {
  return database == cli::Database::sqlite3 ? 400ms : 2s;
}

Pool open_worker_pool(const cli::DatabaseOption& database, const std::string& name, std::size_t connections) {
  return open_pool(database.url(), {.connections = connections,
                                    .acquire_timeout = 10s,
                                    .connect_timeout = 5s,
                                    .lock_timeout = worker_lock_timeout(database.database()),
                                    .statement_timeout = 10s,
                                    .on_connect = [name](soci::session& session) {
                                      if (session.get_backend_name() != "postgresql") return;
                                      session << "set client_min_messages to error";
                                      session << "set application_name to '" + name + "'";
                                    }});
}

Pool open_parent_pool(const cli::DatabaseOption& database) {
  return open_pool(database.url(), {.connections = 1,
                                    .connect_timeout = 5s,
                                    .lock_timeout = 10s,
                                    .statement_timeout = 10min,
                                    .idle_transaction_timeout = 10min,
                                    .on_connect = [](soci::session& session) {
                                      if (session.get_backend_name() == "postgresql") {
                                        session << "set client_min_messages to error";
                                      }
                                    }});
}

}  // namespace txinbox::torture
