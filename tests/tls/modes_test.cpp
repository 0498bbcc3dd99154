// sslmode means the same on every server.

#include <string>

#include <doctest/doctest.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/test_database.hpp"
#include "tls/servers.hpp"

namespace txinbox::test {
namespace {

std::string with_ca(const std::string& name) { return (on_mysql() ? "&sslca=" : "&sslrootcert=") + file(name); }

TEST_CASE("sslmode=require encrypts with any certificate") {
  CHECK(connect(with_certificate() + "?sslmode=require") == "encrypted");
  CHECK(connect(with_other_hosts_certificate() + "?sslmode=require") == "encrypted");
}

TEST_CASE("sslmode=require with a CA refuses a certificate of another CA") {
  CHECK(connect(with_other_hosts_certificate() + "?sslmode=require" + with_ca("ca.pem")) == "encrypted");
  CHECK(connect(with_certificate() + "?sslmode=require" + with_ca("other-ca.pem")) == "refused");
}

TEST_CASE("sslmode=verify-ca refuses a certificate of another CA, and accepts one for another host") {
  CHECK(connect(with_certificate() + "?sslmode=verify-ca" + with_ca("ca.pem")) == "encrypted");
  CHECK(connect(with_other_hosts_certificate() + "?sslmode=verify-ca" + with_ca("ca.pem")) == "encrypted");
  CHECK(connect(with_certificate() + "?sslmode=verify-ca" + with_ca("other-ca.pem")) == "refused");
}

TEST_CASE("sslmode=verify-full refuses a certificate of another CA, and one for another host") {
  CHECK(connect(with_certificate() + "?sslmode=verify-full" + with_ca("ca.pem")) == "encrypted");
  CHECK(connect(with_other_hosts_certificate() + "?sslmode=verify-full" + with_ca("ca.pem")) == "refused");
  CHECK(connect(with_certificate() + "?sslmode=verify-full" + with_ca("other-ca.pem")) == "refused");
}

TEST_CASE("every sslmode that requires TLS refuses a server without TLS") {
  CHECK(connect(without_tls() + "?sslmode=require") == "refused");
  CHECK(connect(without_tls() + "?sslmode=require" + with_ca("ca.pem")) == "refused");
  CHECK(connect(without_tls() + "?sslmode=verify-ca" + with_ca("ca.pem")) == "refused");
  CHECK(connect(without_tls() + "?sslmode=verify-full" + with_ca("ca.pem")) == "refused");
}

TEST_CASE("sslmode=disable does not encrypt") {
  CHECK(connect(with_certificate() + "?sslmode=disable") == "unencrypted");
  CHECK(connect(without_tls() + "?sslmode=disable") == "unencrypted");
}

TEST_CASE("a missing CA file is an error whose text does not contain the file's name") {
  const std::string url = with_certificate() + "?sslmode=verify-ca" + with_ca("S3cr3tPw.pem");
  CHECK(connect(url) == (on_mysql() ? "invalid_argument" : "refused"));
  const std::string said = error_of(url);
  CHECK_MESSAGE(said.find("S3cr3tPw") == std::string::npos, said);
  CHECK_MESSAGE(said.find(on_mysql() ? "sslca" : "sslrootcert") != std::string::npos, said);
}

TEST_CASE("sslmode=verify-ca without a CA is refused") {
  const Variable home("HOME", file("nowhere"));  // libpq looks for a CA file in this folder
  CHECK(connect(with_certificate() + "?sslmode=verify-ca") == (on_mysql() ? "invalid_argument" : "refused"));
}

TEST_CASE("a connection that reconnects is encrypted again") {
  Pool pool = open_pool(with_certificate() + "?sslmode=verify-full" + with_ca("ca.pem"), {.connections = 1});
  const Connection lent = pool.acquire();
  lent.session().reconnect();
  CHECK(!encryption(lent.session()).empty());
}

TEST_CASE("messages are consumed over an encrypted connection, and inbox_status reports the encryption") {
  const TestDatabase db;
  const char mark = db.url().find('?') == std::string::npos ? '?' : '&';
  Pool pool = open_pool(db.url() + mark + "sslmode=verify-full" + with_ca("ca.pem"), {.connections = 1});
  TxConsumer consumer(pool, "svc");
  for (const bool first : {true, false}) {
    const Result result = consumer.consume({.business_key = "k"}, [](soci::session&, Delivery&) {});
    CHECK((result.outcome == Outcome::consumed) == first);
  }
  const Connection lent = pool.acquire();
  CHECK(inbox_status(lent.session()).encryption.starts_with("TLSv1."));
  CHECK(diagnose(lent.session()).empty());
}

}  // namespace
}  // namespace txinbox::test
