#include "open_database.hpp"

#include <soci/soci.h>

namespace txinbox::cli {

Pool open_database(const DatabaseOption& database, bool notices) {
  PoolOptions options{.connections = 1};
  if (!notices) {
    options.on_connect = [](soci::session& session) {
      if (session.get_backend_name() == "postgresql") session << "set client_min_messages to error";
    };
  }
  return open_pool(database.url(), options);
}

}  // namespace txinbox::cli
