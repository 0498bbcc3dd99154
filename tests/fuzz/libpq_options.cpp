#include "libpq_options.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <libpq-fe.h>
#include <txinbox/error.hpp>
#include <txinbox/pool.hpp>

#include "backend/registry.hpp"
#include "fuzz.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::fuzz {
namespace {

const std::set<std::string>& known_to_libpq() {
  static const std::set<std::string> names = [] {
    std::set<std::string> found;
    PQconninfoOption* const options = PQconndefaults();
    for (const auto* option = options; option->keyword != nullptr; ++option) found.insert(option->keyword);
    PQconninfoFree(options);
    return found;
  }();
  return names;
}

}  // namespace

void claim_reaches_libpq(const detail::Url& url) {
  std::map<std::string, std::string> wanted;
  const auto want = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) wanted[name] = value;  // libpq uses the last value
  };
  want("host", url.host);
  want("port", url.port);
  want("user", url.user);
  want("password", url.password);
  want("dbname", url.path);
  for (const auto& [name, value] : url.parameters) want(name, value);
  const std::set<std::string> ours{"connect_timeout",  "keepalives",       "keepalives_idle", "keepalives_interval",
                                   "keepalives_count", "tcp_user_timeout", "application_name"};

  const auto text = unless_refused<Error>(
      [&] { return backend::soci_database_named("postgresql").connection_string(url, PoolOptions{}); });
  const auto is_known = [](const auto& parameter) { return known_to_libpq().count(parameter.first) != 0; };
  claim(text.has_value() == std::all_of(url.parameters.begin(), url.parameters.end(), is_known),
        "a parameter is refused if libpq does not know it, and only then");
  if (!text) return;
  char* error = nullptr;
  PQconninfoOption* const options = PQconninfoParse(text->c_str(), &error);
  PQfreemem(error);
  claim(options != nullptr, "libpq accepts the connection string");
  for (const auto* option = options; option->keyword != nullptr; ++option) {
    const std::string name = option->keyword;
    if (option->val == nullptr) {
      claim(wanted.count(name) == 0, "libpq gets every value of the URL");
    } else if (wanted.count(name) != 0) {
      claim(wanted[name] == option->val, "libpq gets the value unchanged");
    } else {
      claim(ours.count(name) != 0, "libpq gets no other value than those of the URL and of txinbox");
    }
  }
  PQconninfoFree(options);
}

}  // namespace txinbox::fuzz
