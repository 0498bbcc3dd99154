#include "client_api.hpp"

#include <soci/soci.h>

namespace txinbox::bench {

std::unique_ptr<ClientApi> client_api(soci::session& sql) {
  const std::string name = sql.get_backend_name();
  if (name == "sqlite3") return sqlite3_api(sql);
  if (name == "mysql") return mysql_api(sql);
  return postgresql_api(sql);
}

}  // namespace txinbox::bench
