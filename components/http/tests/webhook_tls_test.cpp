// The HTTP publisher of the outbox over TLS.

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <httplib.h>

#include "webhook_kit.hpp"

namespace txinbox::test {
namespace {

/// A webhook with TLS, and its own certificate.
class TlsWebhook {
 public:
  /// `names`: the certificate's subjectAltName. Empty: it has none. Its common name is "localhost".
  explicit TlsWebhook(const std::string& names)
      : folder_(std::filesystem::temp_directory_path() / ("txinbox-https-" + std::to_string(::getpid()))),
        server_([this](const httplib::Request&, httplib::Response&) { ++requests; }, make_server(names)) {}
  ~TlsWebhook() { std::filesystem::remove_all(folder_); }
  TlsWebhook(const TlsWebhook&) = delete;
  TlsWebhook& operator=(const TlsWebhook&) = delete;

  std::string url() const { return "https://localhost:" + std::to_string(server_.port()) + "/events"; }
  std::string certificate() const { return folder_ / "server.pem"; }

  std::atomic<int> requests = 0;

 private:
  std::unique_ptr<httplib::Server> make_server(const std::string& names) const {
    std::filesystem::create_directory(folder_);
    const std::string key = folder_ / "server.key";
    const std::string extension = names.empty() ? "" : "-addext subjectAltName=" + names;
    const std::string make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost " + extension +
                             " -keyout " + key + " -out " + certificate() + " 2>/dev/null";
    REQUIRE(std::system(make.c_str()) == 0);  // NOLINT(cert-env33-c)
    return std::make_unique<httplib::SSLServer>(certificate().c_str(), key.c_str());
  }

  const std::filesystem::path folder_;
  const WebhookServer server_;
};

TEST_CASE("HTTP: https verifies the server's certificate") {
  TlsWebhook server("DNS:localhost,IP:127.0.0.1");
  HttpPublisherOptions options{.url = server.url()};
  CHECK_THROWS_AS(publisher_for(options)(numbered(1)), std::runtime_error);
  CHECK(server.requests == 0);
  options.ca_file = server.certificate();
  CHECK(publisher_for(options)(numbered(1))[0].status == PublishStatus::confirmed);
  CHECK(server.requests == 1);
  options.url.replace(options.url.find("localhost"), 9, "127.0.0.1");
  CHECK(publisher_for(options)(numbered(2))[1].status == PublishStatus::confirmed);
  CHECK(server.requests == 3);
}

TEST_CASE("HTTP: https refuses a certificate for another name, also if its common name is the host") {
  for (const std::string names : {"DNS:other.example", "DNS:other.example,IP:127.0.0.1"}) {
    CAPTURE(names);
    TlsWebhook server(names);
    const Publisher publish = publisher_for({.url = server.url(), .ca_file = server.certificate()});
    for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(publish(numbered(1)), std::runtime_error);
    CHECK(server.requests == 0);
  }
  TlsWebhook server("");
  const Publisher publish = publisher_for({.url = server.url(), .ca_file = server.certificate()});
  CHECK(publish(numbered(1))[0].status == PublishStatus::confirmed);
}

}  // namespace
}  // namespace txinbox::test
