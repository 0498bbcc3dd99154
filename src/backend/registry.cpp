#include <array>
#include <exception>
#include <string>

#include <soci/error.h>
#include <soci/session.h>

#include "backend/registry.hpp"
#ifdef TXINBOX_WITH_SQLITE3
#include "backend/sqlite3/database.hpp"
#endif
#ifdef TXINBOX_WITH_MYSQL
#include "backend/mysql/database.hpp"
#endif
#ifdef TXINBOX_WITH_POSTGRESQL
#include "backend/postgresql/database.hpp"
#endif

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {
namespace {

const auto& databases() {
  static const auto all = std::to_array<const Database*>({
#ifdef TXINBOX_WITH_SQLITE3
      &sqlite3_database(),
#endif
#ifdef TXINBOX_WITH_MYSQL
      &mysql_database(),
#endif
#ifdef TXINBOX_WITH_POSTGRESQL
      &postgresql_database(),
#endif
  });
  return all;
}

}  // namespace

const Database& database_named(std::string_view name) {
  std::string known;
  for (const Database* database : databases()) {
    if (database->name() == name) return *database;
    known.append(known.empty() ? "" : ", ").append(database->name());
  }
  throw Error(ErrorCode::unsupported_database,
              "the database '" + std::string(name) + "' is not known to this build of txinbox; it knows " + known);
}

const Database& database_of(soci::session& sql) {
  if (sql.get_backend() == nullptr) {
    throw Error(ErrorCode::unsupported_database, "the SOCI session is not connected; open it first");
  }
  return database_named(sql.get_backend_name());
}

ErrorClass classify(const soci::soci_error& error) noexcept {
  for (const Database* database : databases()) {
    if (const auto found = database->classify(error)) return *found;
  }
  return ErrorClass::other;
}

std::string code_of(const soci::soci_error& error) {
  for (const Database* database : databases()) {
    if (database->classify(error)) return std::string(database->name()) + " " + database->code_of(error);
  }
  return "database";
}

std::unique_ptr<soci::session> Database::open(const soci::backend_factory& factory,
                                              const std::string& connection_string,
                                              const detail::UrlParameters&) const {
  return std::make_unique<soci::session>(factory, connection_string);
}

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
