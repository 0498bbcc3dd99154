#include <string>
#include <vector>

#include <soci/error.h>
#include <soci/session.h>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

// One line for each database: what its folder defines, and registry.cpp lists. Weak: null unless it is linked. The
// linker is told by name to take it from its archive (src/CMakeLists.txt), so that it has a C name.
extern "C" {
[[gnu::weak]] const Database* txinbox_sqlite3_database() noexcept;
[[gnu::weak]] const Database* txinbox_mysql_database() noexcept;
[[gnu::weak]] const Database* txinbox_postgresql_database() noexcept;
}

namespace {

const auto& databases() {
  static const auto linked = [] {
    std::vector<const Database*> found;
    for (const auto database : {&txinbox_sqlite3_database, &txinbox_mysql_database, &txinbox_postgresql_database}) {
      if (database != nullptr) found.push_back(database());
    }
    return found;
  }();
  return linked;
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

ErrorDescription describe(const soci::soci_error& error) {
  for (const Database* database : databases()) {
    if (database->classify(error)) return database->describe(error);
  }
  return {.what = "database error without a code"};
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
