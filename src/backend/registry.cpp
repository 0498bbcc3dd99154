#include <algorithm>
#include <string>
#include <vector>

#include "backend/registry.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace backend {

// The folder of the database defines this function. The reference is weak: it is null if the database is not linked.
// The function has a C name, because src/CMakeLists.txt gives this name to the linker.
#define TXINBOX_DECLARE(name, ...) [[gnu::weak]] const Database* txinbox_##name##_database() noexcept;
extern "C" {
TXINBOX_FOR_EACH_DATABASE(TXINBOX_DECLARE)
}
#undef TXINBOX_DECLARE

namespace {

struct Known {
  std::string_view name;
  std::vector<std::string_view> schemes;
  const Database* linked;  // null if the database is not linked
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

/// Whether an error may show this text as a scheme. Any other text before a colon can contain a password.
bool can_be_scheme(std::string_view text) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
  constexpr std::size_t longest = 20;
  return text.size() <= longest && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

const Database* find_database(std::string_view name) noexcept {
  const auto found = std::ranges::find(databases(), name, &Database::name);
  return found == databases().end() ? nullptr : *found;
}

const Database& database_named(std::string_view name) {
  if (const Database* found = find_database(name)) return *found;
  std::string known;
  for (const Database* database : databases()) {
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
                  "after 'soci:' write a connection string of SOCI, such as soci:mysql://db=orders user=svc");
    }
    return database_named(url.substr(0, end));
  }
  if (const Known* known = known_by_scheme(scheme)) return database_named(known->name);
  std::string schemes;
  for (const Known& each : known_databases()) {
    for (const std::string_view one : each.schemes) schemes.append(schemes.empty() ? "" : ", ").append(one);
  }
  throw Error(ErrorCode::invalid_argument, "the database URL's scheme " +
                                               (can_be_scheme(scheme) ? "'" + scheme + "' " : "") + "is not known; " +
                                               schemes + " and soci are");
}

const Database* find_by_scheme(std::string_view scheme) noexcept {
  const Known* known = known_by_scheme(scheme);
  return known == nullptr ? nullptr : known->linked;
}

bool is_url_scheme(std::string_view scheme) noexcept { return scheme == "soci" || known_by_scheme(scheme) != nullptr; }

}  // namespace backend
TXINBOX_NAMESPACE_END
}  // namespace txinbox
