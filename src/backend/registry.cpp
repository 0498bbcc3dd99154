#include <algorithm>
#include <string>
#include <vector>

#include <soci/error.h>
#include <soci/session.h>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

// The one list of the databases: a name, the schemes of the URLs, the preferred one first. The schemes stand here and
// not in the database's folder, so that a URL of a database that is not linked gets a clear error.
#define TXINBOX_FOR_EACH_DATABASE(X) \
  X(sqlite3, "sqlite", "sqlite3")    \
  X(mysql, "mysql", "mariadb")       \
  X(postgresql, "postgresql", "postgres")

// What the database's folder defines. Weak: null unless it is linked. The linker is told by name to take it from its
// archive (src/CMakeLists.txt), so that it has a C name.
#define TXINBOX_DECLARE(name, ...) [[gnu::weak]] const Database* txinbox_##name##_database() noexcept;
extern "C" {
TXINBOX_FOR_EACH_DATABASE(TXINBOX_DECLARE)
}
#undef TXINBOX_DECLARE

namespace {

struct Known {
  std::string_view name;
  std::vector<std::string_view> schemes;
  const Database* linked;  // null if it is not
};

const std::vector<Known>& known_databases() {
#define TXINBOX_LIST(name, ...) \
  {#name, {__VA_ARGS__}, txinbox_##name##_database == nullptr ? nullptr : txinbox_##name##_database()},
  static const std::vector<Known> known = {TXINBOX_FOR_EACH_DATABASE(TXINBOX_LIST)};
#undef TXINBOX_LIST
  return known;
}

const std::vector<const Database*>& databases() {
  static const auto linked = [] {
    std::vector<const Database*> found;
    for (const Known& each : known_databases()) {
      if (each.linked != nullptr) found.push_back(each.linked);
    }
    return found;
  }();
  return linked;
}

const Known* known_by_scheme(std::string_view scheme) {
  for (const Known& each : known_databases()) {
    if (std::ranges::find(each.schemes, scheme) != each.schemes.end()) return &each;
  }
  return nullptr;
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

const Database& database_of_url(std::string_view url) {
  const std::string scheme = detail::url_scheme(url);
  if (scheme == "soci") {
    url.remove_prefix(scheme.size() + 1);
    const auto end = url.find("://");
    if (end == std::string_view::npos) {
      throw Error(ErrorCode::invalid_argument,
                  "behind 'soci:' stands a connection string of SOCI's, such as soci:mysql://db=orders user=svc");
    }
    return database_named(url.substr(0, end));
  }
  if (const Known* known = known_by_scheme(scheme)) return database_named(known->name);
  std::string schemes;
  for (const Known& each : known_databases()) {
    for (const std::string_view one : each.schemes) schemes.append(schemes.empty() ? "" : ", ").append(one);
  }
  throw Error(ErrorCode::invalid_argument,
              "the database URL's scheme '" + scheme + "' is not known; " + schemes + " and soci are");
}

const Database* find_by_scheme(std::string_view scheme) noexcept {
  const Known* known = known_by_scheme(scheme);
  return known == nullptr ? nullptr : known->linked;
}

bool is_url_scheme(std::string_view scheme) noexcept { return scheme == "soci" || known_by_scheme(scheme) != nullptr; }

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
