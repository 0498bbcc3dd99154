#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <httplib.h>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>

namespace txinbox::test {

/// A webhook that listens on the loopback.
class WebhookServer {
 public:
  using Answer = std::function<void(const httplib::Request&, httplib::Response&)>;

  explicit WebhookServer(Answer answer, std::unique_ptr<httplib::Server> server = std::make_unique<httplib::Server>())
      : server_(std::move(server)) {
    server_->Post("/events", [answer = std::move(answer)](const auto& from, auto& to) { answer(from, to); });
    port_ = server_->bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
    thread_ = std::jthread([this] { server_->listen_after_bind(); });
    while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~WebhookServer() { server_->stop(); }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/events"; }
  int port() const { return port_; }

 private:
  std::unique_ptr<httplib::Server> server_;
  int port_ = 0;
  std::jthread thread_;
};

/// A publisher that sends with cpp-httplib.
inline Publisher publisher_for(const HttpPublisherOptions& options) {
  return http_publisher(options, http::httplib_sender(options));
}

/// Messages with the keys, payloads and ids of different numbers.
inline std::vector<OutgoingMessage> numbered(int count) {
  std::vector<OutgoingMessage> messages;
  for (int i = 0; i < count; ++i) {
    messages.push_back(
        {.topic = "stock", .key = std::to_string(i), .payload = std::to_string(i), .id = "id" + std::to_string(i)});
  }
  return messages;
}

}  // namespace txinbox::test
