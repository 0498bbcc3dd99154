// The text of an error does not contain a password, even if the password is in the wrong place of a URL.

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/pool.hpp>

#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

std::vector<std::string> parameters() {
  if (on_mysql()) return {"unix_socket", "sslmode", "sslca", "sslcert", "sslkey", "charset", "unknown"};
  if (on_sqlite3()) return {"unknown", "mode"};
  return {"unknown",
          "host",
          "hostaddr",
          "port",
          "user",
          "password",
          "dbname",
          "passfile",
          "sslmode",
          "sslrootcert",
          "sslcert",
          "sslkey",
          "sslpassword",
          "sslcrl",
          "sslcrldir",
          "sslcompression",
          "sslsni",
          "ssl_min_protocol_version",
          "ssl_max_protocol_version",
          "requirepeer",
          "channel_binding",
          "gssencmode",
          "krbsrvname",
          "gsslib",
          "service",
          "connect_timeout",
          "tcp_user_timeout",
          "keepalives",
          "keepalives_idle",
          "keepalives_interval",
          "keepalives_count",
          "target_session_attrs",
          "client_encoding",
          "options",
          "application_name",
          "fallback_application_name",
          "replication"};
}

/// The URL with one more parameter. The URL may already have a parameter of this name.
std::string with(std::string url, const std::string& parameter) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + parameter;
}

TEST_CASE("no error contains the value of a URL's parameter") {
  const TestDatabase db;
  int refused = 0;
  for (const std::string& name : parameters()) {
    CAPTURE(name);
    for (const std::string value : {"S3cr3tPw", "/S3cr3tPw"}) {
      if (name == "host" && value[0] != '/') continue;  // the client would look up the name
      std::string url = with(db.url(), name + "=" + value);
      // The client library uses the socket only for this host.
      if (name == "unix_socket") url.replace(url.find("127.0.0.1"), 9, "localhost");
      try {
        (void)open_pool(url, {.connections = 1});
      } catch (const std::exception& e) {
        ++refused;
        CHECK_MESSAGE(std::string(e.what()).find("S3cr3tPw") == std::string::npos, e.what());
      }
    }
  }
  CHECK(refused >= 2);
}

TEST_CASE("no error contains the server settings of a URL" * doctest::skip(!on_postgresql())) {
  const TestDatabase db;
  try {
    (void)open_pool(with(db.url(), "options=-c%20statement_timeout%3DS3cr3tPw"), {.connections = 1});
    FAIL("the server accepted the setting");
  } catch (const std::exception& e) {
    CHECK_MESSAGE(std::string(e.what()).find("S3cr3tPw") == std::string::npos, e.what());
  }
}

}  // namespace
}  // namespace txinbox::test
