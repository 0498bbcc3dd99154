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
    if (!value.empty()) wanted[name] = value;  // libpq takes the last
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
    claim(!url.parameters.empty(), "libpq refuses nothing but a parameter's name");
    return;
  }
  for (const auto* option = options; option->keyword != nullptr; ++option) {
    const std::string name = option->keyword;
    if (option->val == nullptr) {
      claim(wanted.count(name) == 0, "libpq is given what the URL says");
    } else if (wanted.count(name) != 0) {
      claim(wanted[name] == option->val, "libpq is given it unchanged");
    } else {
      claim(ours.count(name) != 0, "libpq is given nothing that the URL does not say");
    }
  }
  PQconninfoFree(options);
}

}  // namespace txinbox::fuzz
