#include "service.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <txinbox/http/httplib.hpp>

namespace txinbox::test {

class Service::Impl {
 public:
  template <class H>
  Impl(http::Guard& guard, H handler) {
    server_.Post("/orders", http::httplib_route(guard, std::move(handler)));
    port_ = server_.bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Impl() { server_.stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int port() const { return port_; }

 private:
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

Service::Service(http::Guard& guard, Handler handler) : impl_(std::make_unique<Impl>(guard, std::move(handler))) {}
Service::Service(http::Guard& guard, LeaseHandler handler) : impl_(std::make_unique<Impl>(guard, std::move(handler))) {}
Service::~Service() = default;

int Service::port() const { return impl_->port(); }

http::Response Service::post(const std::string& body, const std::vector<http::Header>& headers) const {
  return test::post(port(), "/orders", body, headers);
}

http::Response post(int port, const std::string& target, const std::string& body,
                    const std::vector<http::Header>& headers, const std::string& content_type) {
  httplib::Client client("127.0.0.1", port);
  client.set_read_timeout(120);
  httplib::Headers fields;
  for (const http::Header& each : headers) fields.emplace(each.name, each.value);
  const auto got = client.Post(target, fields, body, content_type);
  REQUIRE(got);
  http::Response response{.status = got->status, .body = got->body};
  for (const auto& [name, value] : got->headers) response.headers.push_back({name, value});
  return response;
}

}  // namespace txinbox::test
