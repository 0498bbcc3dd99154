#include "libpq_options.hpp"

#include <map>
#include <set>
#include <string>

#include <libpq-fe.h>
#include <txinbox/pool.hpp>

#include "backend/registry.hpp"
#include "fuzz.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::fuzz {

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

  const std::string text = backend::soci_database_named("postgresql").connection_string(url, PoolOptions{});
  char* error = nullptr;
  PQconninfoOption* const options = PQconninfoParse(text.c_str(), &error);
  PQfreemem(error);
  if (options == nullptr) {
    claim(!url.parameters.empty(), "libpq refuses only the name of a parameter");
    return;
  }
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
