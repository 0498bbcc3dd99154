// TLS settings that only MariaDB and MySQL have: parameters of the URL, and the client library's option files.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/mysql/soci-mysql.h>

#include "base/token.hpp"
#include "base/url.hpp"
#include "support/test_database.hpp"
#include "tls/servers.hpp"

namespace txinbox::test {
namespace {

TEST_SUITE_BEGIN("mysql" * doctest::skip(!on_mysql()));

/// A home folder with a .my.cnf whose [client] group has these options. HOME names it while this object exists.
class OptionFile {
 public:
  explicit OptionFile(const std::string& options)
      : folder_(std::filesystem::temp_directory_path() / ("txinbox_" + detail::Token::random().hex())),
        home_("HOME", folder_.string()) {
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / ".my.cnf") << "[client]\n" << options;
  }
  ~OptionFile() { std::filesystem::remove_all(folder_); }
  OptionFile(const OptionFile&) = delete;
  OptionFile& operator=(const OptionFile&) = delete;

 private:
  std::filesystem::path folder_;
  Variable home_;
};

std::string without_password(const std::string& url) {
  return url.substr(0, url.find(':', url.find("//"))) + url.substr(url.find('@'));
}

std::string password() { return detail::parse_url(with_certificate()).password; }

/// Tries to connect, and returns the number of the error. 0 if there is no error.
unsigned error_number(const std::string& url) {
  try {
    (void)open_pool(url, {.connections = 1});
  } catch (const soci::mysql_soci_error& e) {
    return e.err_num_;
  }
  return 0;
}

constexpr unsigned ssl_connection_error = 2026;

TEST_CASE("a CA without sslmode is checked, and the connection never falls back to no encryption") {
  CHECK(connect(with_certificate() + "?sslca=" + file("ca.pem")) == "encrypted");
  CHECK(connect(with_other_hosts_certificate() + "?sslca=" + file("ca.pem")) == "encrypted");
  CHECK(connect(with_certificate() + "?sslca=" + file("other-ca.pem")) == "refused");
  CHECK(connect(without_tls() + "?sslca=" + file("ca.pem")) == "refused");
  CHECK(connect(with_certificate() + "?sslca=") == "invalid_argument");
}

TEST_CASE("a URL with sslmode=disable and a CA is refused") {
  CHECK(connect(with_certificate() + "?sslca=" + file("ca.pem") + "&sslmode=disable") == "invalid_argument");
}

TEST_CASE("an unknown sslmode is refused, and so is prefer, which could send the password unencrypted") {
  CHECK(connect(with_certificate() + "?sslmode=S3cr3tPw") == "invalid_argument");
  CHECK(connect(with_certificate() + "?sslmode=prefer") == "invalid_argument");
}

TEST_CASE("sslmode=verify-full without a CA trusts the system's CAs") {
  CHECK(connect(with_certificate() + "?sslmode=verify-full") == "refused");
  const Variable system("SSL_CERT_FILE", file("ca.pem"));  // the client library uses OpenSSL, which reads this variable
  CHECK(connect(with_certificate() + "?sslmode=verify-full") == "encrypted");
  CHECK(connect(with_other_hosts_certificate() + "?sslmode=verify-full") == "refused");
  CHECK(connect(without_tls() + "?sslmode=verify-full") == "refused");
}

TEST_CASE("a client certificate is sent to the server, and implies encryption") {
  {
    Pool pool = open_pool(with_certificate() + "?sslmode=require");
    const Connection admin = pool.acquire();
    admin.session() << "create user if not exists shown@127.0.0.1 identified by 'x' require x509";
    admin.session() << "grant all on *.* to shown@127.0.0.1";
  }
  const detail::Url url = detail::parse_url(with_certificate());
  const std::string shown = "mysql://shown:x@127.0.0.1:" + url.port + "/mysql";
  CHECK(connect(shown + "?sslcert=" + file("client.pem") + "&sslkey=" + file("client.key")) == "encrypted");
  CHECK(connect(shown + "?sslmode=require") == "access_refused");
  CHECK(connect(without_tls() + "?sslcert=" + file("client.pem") + "&sslkey=" + file("client.key")) == "refused");
}

TEST_CASE("a server without TLS gets neither a user name nor a password") {
  // This server sends the greeting of the server without TLS, and counts the bytes that it receives.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener, 1) == 0);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::array<char, 1024> buffer{};

  sockaddr_in real{};
  real.sin_family = AF_INET;
  real.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  real.sin_port = htons(static_cast<std::uint16_t>(std::stoi(detail::parse_url(without_tls()).port)));
  const int asked = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::connect(asked, reinterpret_cast<sockaddr*>(&real), sizeof real) == 0);
  const auto greeting = recv(asked, buffer.data(), buffer.size(), 0);
  close(asked);
  REQUIRE(greeting > 0);

  for (const std::string parameters :
       {"?sslmode=require", "?sslmode=verify-full", "?sslca=", "?sslmode=verify-ca&sslca="}) {
    CAPTURE(parameters);
    ssize_t heard = -1;
    std::thread server([&] {
      const int client = accept(listener, nullptr, nullptr);
      send(client, buffer.data(), static_cast<std::size_t>(greeting), MSG_NOSIGNAL);
      std::array<char, 1024> heard_bytes{};
      heard = recv(client, heard_bytes.data(), heard_bytes.size(), 0);
      close(client);
    });
    const std::string ca = parameters.ends_with('=') ? file("ca.pem") : "";
    CHECK(connect("mysql://user:S3cr3tPw@127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/db" + parameters +
                  ca) == "refused");
    server.join();
    CHECK(heard == 0);
  }
  close(listener);
}

TEST_CASE("a SOCI connection string with a CA is refused, because SOCI cannot require encryption") {
  const auto soci = [](const std::string& server, const std::string& more) {
    const detail::Url url = detail::parse_url(server);
    return "soci:mysql://host=127.0.0.1 port=" + url.port + " user=txinbox password=" + url.password + " db=mysql" +
           more;
  };
  CHECK(connect(soci(without_tls(), "")) == "unencrypted");
  CHECK(connect(soci(without_tls(), " sslca=" + file("ca.pem"))) == "unsafe_connection");
  CHECK(connect(soci(with_certificate(), " sslca=" + file("ca.pem"))) == "unsafe_connection");
}

TEST_CASE("a password in an option file is used, also if the file has no options for TLS") {
  const OptionFile options("password=" + password() + "\n");
  CHECK(connect(without_password(without_tls())) == "unencrypted");
  CHECK(connect(without_password(with_certificate()) + "?sslmode=require") == "encrypted");
}

TEST_CASE("the CA of an option file is used for every connection") {
  const OptionFile options("password=" + password() + "\nssl-ca=" + file("ca.pem") + "\n");
  for (const bool has_password : {true, false}) {
    CAPTURE(has_password);
    const auto url = [&](const std::string& full) { return has_password ? full : without_password(full); };
    CHECK(connect(url(with_certificate())) == "encrypted");
    CHECK(connect(url(with_other_hosts_certificate())) == "refused");
    CHECK(connect(url(without_tls())) == "refused");
    CHECK(connect(url(with_other_hosts_certificate()) + "?sslmode=verify-ca") == "encrypted");
    CHECK(connect(url(with_other_hosts_certificate()) + "?sslmode=verify-full") == "refused");
  }
}

TEST_CASE("a wrong CA in an option file is an error about TLS, not about a password") {
  const OptionFile options("password=" + password() + "\nssl-ca=" + file("other-ca.pem") + "\n");
  CHECK(error_number(without_password(with_certificate())) == ssl_connection_error);
}

TEST_CASE("with the CA of an option file, the host name is also checked, unless the file disables this") {
  for (const std::string verify : {"", "ssl-verify-server-cert\n", "ssl-verify-server-cert=1\n"}) {
    CAPTURE(verify);
    const OptionFile options("ssl-ca=" + file("ca.pem") + "\n" + verify);
    CHECK(connect(with_certificate()) == "encrypted");
    CHECK(connect(with_other_hosts_certificate()) == "refused");
    CHECK(connect(without_tls()) == "refused");
  }
  const OptionFile options("ssl-ca=" + file("ca.pem") + "\nssl-verify-server-cert=0\n");
  CHECK(connect(with_other_hosts_certificate()) == "encrypted");
  CHECK(connect(without_tls()) == "refused");
}

TEST_CASE("an option file can require encryption without a CA") {
  const OptionFile options("ssl-enforce=1\n");
  CHECK(connect(with_other_hosts_certificate()) == "encrypted");
  CHECK(connect(without_tls()) == "refused");
}

TEST_CASE("the parameters of the URL override an option file") {
  const OptionFile options("ssl-ca=" + file("other-ca.pem") + "\n");
  CHECK(connect(with_certificate()) == "refused");
  CHECK(connect(with_certificate() + "?sslca=" + file("ca.pem")) == "encrypted");
  CHECK(connect(with_certificate() + "?sslmode=disable") == "unencrypted");
}

TEST_CASE("a missing CA file that an option file names is an error, and no connection is made without it") {
  const OptionFile options("ssl-ca=" + file("nowhere.pem") + "\n");
  CHECK(connect(with_certificate()) == "invalid_argument");
  CHECK(connect(without_tls()) == "invalid_argument");
}

TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
