// The HTTP publisher of the outbox, with servers that misbehave.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/http_publisher.hpp>

#include "raw_server.hpp"
#include "shared/sigpipe_block.hpp"
#include "webhook_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

std::atomic<int> sigpipes = 0;

/// Counts SIGPIPE as long as it lives.
class CountsSigpipe {
 public:
  CountsSigpipe() : before_(std::signal(SIGPIPE, [](int) { ++sigpipes; })) { sigpipes = 0; }
  ~CountsSigpipe() { std::signal(SIGPIPE, before_); }
  CountsSigpipe(const CountsSigpipe&) = delete;
  CountsSigpipe& operator=(const CountsSigpipe&) = delete;

 private:
  void (*before_)(int);
};

/// Writes to a connection whose other end is closed.
void write_in_vain() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  ::close(ends[1]);
  CHECK(::send(ends[0], "x", 1, 0) == -1);
  ::close(ends[0]);
}

bool is_sigpipe_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

std::vector<OutgoingMessage> with_payload(const std::string& payload) {
  return {{.topic = "stock", .key = "1", .payload = payload, .id = "id1"}};
}

TEST_CASE("SIGPIPE reaches a thread that blocks it neither during the block nor after it") {
  const CountsSigpipe counts;
  write_in_vain();
  REQUIRE(sigpipes == 1);
  {
    const component::SigpipeBlock block;
    write_in_vain();
    {
      const component::SigpipeBlock nested;
      write_in_vain();
    }
    write_in_vain();
  }
  CHECK(sigpipes == 1);
  write_in_vain();
  CHECK(sigpipes == 2);

  // A signal that was pending before stays pending.
  sigset_t signals;
  sigset_t mask;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &signals, &mask);
  write_in_vain();
  {
    const component::SigpipeBlock block;
    write_in_vain();
  }
  CHECK(is_sigpipe_pending());
  CHECK(sigpipes == 2);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  CHECK(sigpipes == 3);
}

TEST_CASE("HTTP: neither a call of a publisher nor its end raises SIGPIPE, whatever sends its requests") {
  struct Connection {
    Connection() = default;
    ~Connection() { write_in_vain(); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
  };
  const CountsSigpipe counts;
  {
    auto connection = std::make_shared<Connection>();
    const Publisher publish =
        http_publisher({.url = "http://h"}, [connection = std::move(connection)](const auto&, auto) {
          write_in_vain();
          return http::Response{.status = 200};
        });
    CHECK(publish(with_payload("{}"))[0].status == PublishStatus::confirmed);
    CHECK(sigpipes == 0);
  }
  CHECK(sigpipes == 0);
}

TEST_CASE("HTTP: a server that answers early and closes does not end the process with SIGPIPE") {
  const CountsSigpipe counts;
  // The end of the server's side comes before the reset, so Linux raises SIGPIPE for the next write.
  const RawServer server(
      [](int socket) {
        if (read_head(socket).empty()) return;
        send_all(socket, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        ::shutdown(socket, SHUT_WR);
      },
      4096);
  const Publisher publish = publisher_for({.url = server.url(), .timeout = 1h});
  for (int i = 0; i < 4; ++i) {
    // cpp-httplib does not read the answer after a write has failed.
    CHECK_THROWS_AS(publish(with_payload(std::string(4UL * 1024 * 1024, 'x'))), std::runtime_error);
  }
  CHECK(sigpipes == 0);
}

/// Sends the first bytes, and then others again and again, after a pause. Ends when the client has closed its end, or
/// after a number of times, at which a client without limits would still wait.
class Endless {
 public:
  Endless(const std::string& first, const std::string& more, int pause_ms, int times,
          const std::string& scheme = "http")
      : server_([=, this](int socket) {
          if (scheme == "http" && read_request(socket).empty()) return;
          send_all(socket, first);
          for (int i = 0; i < times && !has_ended_; ++i) {
            has_ended_ = (pause_ms > 0 && has_closed(socket, pause_ms)) || !send_all(socket, more);
          }
          is_over_.count_down();
        }),
        url_(server_.url(scheme)) {}

  const std::string& url() const { return url_; }

  /// Whether the client has closed its end.
  bool is_closed_by_client() {
    is_over_.wait();
    return has_ended_;
  }

 private:
  std::atomic<bool> has_ended_ = false;
  std::latch is_over_{1};
  RawServer server_;
  const std::string url_;
};

TEST_CASE("HTTP: a server that sends a little now and then does not hold a publisher beyond its time" *
          doctest::test_suite("timed")) {
  const std::string status = "HTTP/1.1 200 OK\r\n";
  const std::string next = "HTTP/1.1 100 Continue\r\n\r\n";
  for (const auto& sent : {std::pair{status, std::string("A: b\r\n")}, std::pair{status, std::string("b")},
                           std::pair{std::string("H"), std::string("T")}, std::pair{next, next}}) {
    const auto& first = sent.first;
    const auto& more = sent.second;
    CAPTURE(first);
    CAPTURE(more);
    Endless server(first, more, 20, 500);
    const Publisher publish = publisher_for({.url = server.url(), .timeout = 300ms});
    const std::string late = server.url().substr(0, server.url().rfind('/')) + ": the server did not answer in time";
    CHECK_THROWS_WITH_AS(publish(with_payload("{}")), late.c_str(), std::runtime_error);
    CHECK(server.is_closed_by_client());
  }
  // The status is known: only the body is late.
  Endless slow_body("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", "b", 20, 500);
  const Publisher publish = publisher_for({.url = slow_body.url(), .timeout = 300ms});
  CHECK(publish(with_payload("{}"))[0].status == PublishStatus::confirmed);
  CHECK(slow_body.is_closed_by_client());
  // The record of a TLS handshake whose bytes come one by one, each long before cpp-httplib's own time-out.
  Endless handshake(std::string("\x16\x03\x03\x40\x00", 5), "b", 5, 2000, "https");
  CHECK_THROWS_AS(publisher_for({.url = handshake.url(), .timeout = 2s})(with_payload("{}")), std::runtime_error);
  CHECK(handshake.is_closed_by_client());
}

/// Answers each request with 200, and passes it to a function.
void serve_all(int socket, const std::function<void(const std::string&)>& take) {
  for (std::string request = read_request(socket); !request.empty(); request = read_request(socket)) {
    take(request);
    if (!send_all(socket, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")) return;
  }
}

TEST_CASE("HTTP: a publisher does not wait for acknowledgements of TCP") {
  const RawServer server([](int socket) { serve_all(socket, [](const std::string&) {}); });
  const Publisher publish = publisher_for({.url = server.url()});
  CHECK(publish(with_payload("{}"))[0].status == PublishStatus::confirmed);
  int connections = 0;
  for (const int socket : sockets_to(server.port())) {
    ++connections;
    int is_set = 0;
    socklen_t size = sizeof is_set;
    CHECK(::getsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &is_set, &size) == 0);
    CHECK(is_set != 0);
  }
  CHECK(connections > 0);
}

TEST_CASE(
    "HTTP: if the server closes all connections without an answer, the call fails, and otherwise single messages") {
  // a: answered, c: closed, b: answered with 503, r: the server cannot be reached; then the results, or "throws".
  for (const auto& example :
       {std::pair{"aaa", "confirmed confirmed confirmed "}, std::pair{"c", "throws"}, std::pair{"ccc", "throws"},
        std::pair{"ccr", "throws"}, std::pair{"cca", "failed failed confirmed "},
        std::pair{"aca", "confirmed failed confirmed "}, std::pair{"acc", "confirmed postponed postponed "},
        std::pair{"cac", "failed confirmed postponed "}, std::pair{"cbc", "failed failed postponed "},
        std::pair{"acr", "confirmed postponed postponed "}}) {
    const std::string ends = example.first;
    const std::string expected = example.second;
    CAPTURE(ends);
    auto next = ends.begin();
    const HttpSend send = [&](const http::Request&, HttpTimeouts) -> std::optional<http::Response> {
      const char end = *next++;
      if (end == 'r') throw std::runtime_error("away");
      if (end == 'c') return std::nullopt;
      return http::Response{.status = end == 'a' ? 200 : 503};
    };
    const Publisher publish = http_publisher({.url = "http://h", .timeout = 1h}, send);
    std::vector<OutgoingMessage> messages;
    for (std::size_t i = 0; i < ends.size(); ++i) messages.push_back(with_payload("{}")[0]);
    std::string got;
    try {
      for (const PublishResult& result : publish(messages)) {
        using enum PublishStatus;
        got += result.status == confirmed ? "confirmed " : result.status == failed ? "failed " : "postponed ";
      }
    } catch (const std::runtime_error&) {
      got = "throws";
    }
    CHECK(got == expected);
  }

  const RawServer server([](int socket) { read_request(socket); });
  CHECK_THROWS_AS(publisher_for({.url = server.url(), .timeout = 1h})(with_payload("{}")), std::runtime_error);
}

TEST_CASE("HTTP: path and query of the URL are sent as they are") {
  const std::string target = "/a+b/c;d,e'f/%2B%7e/../g?sig=a+b%2Bc'd,e;f=&x=%20&~!*()$@:/?";
  std::string request;
  const RawServer server([&](int socket) { serve_all(socket, [&](const std::string& each) { request = each; }); });
  const Publisher publish = publisher_for({.url = "http://127.0.0.1:" + std::to_string(server.port()) + target});
  CHECK(publish(with_payload("{}"))[0].status == PublishStatus::confirmed);
  CHECK(request.substr(0, request.find("\r\n")) == "POST " + target + " HTTP/1.1");
}

TEST_CASE("HTTP: the head of an answer is bounded, and a long status line does not end the process") {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "X-" + std::to_string(i) + ": " + std::string(100, 'a') + "\r\n";
  const std::string chunk(64UL * 1024, 'a');
  for (const auto& sent :
       {std::pair{std::string("HTTP/1.1 200 OK\r\n"), lines}, std::pair{std::string("HTTP/1.1 200 OK\r\nA: "), chunk},
        std::pair{std::string("HTTP/1.1 200 "), chunk + "\r\n"},
        std::pair{std::string("HTTP/1.1 200 "), std::string(15UL * 1024, 'a') + "\r\n"}}) {
    const auto& first = sent.first;
    const auto& more = sent.second;
    CAPTURE(first);
    Endless server(first, more, 0, static_cast<int>(64UL * 1024 * 1024 / more.size()));
    const Publisher publish = publisher_for({.url = server.url(), .timeout = 1h});
    CHECK_THROWS_AS(publish(with_payload("{}")), std::runtime_error);  // there was no complete answer
    CHECK(server.is_closed_by_client());
  }
  // So is the body, whose content does not matter, also if the length of a chunk does not end.
  Endless chunked("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", std::string(4096, '0'), 0, 16 * 1024);
  const Publisher publish = publisher_for({.url = chunked.url(), .timeout = 60s});
  CHECK(publish(with_payload("{}"))[0].status == PublishStatus::confirmed);
  CHECK(chunked.is_closed_by_client());
}

}  // namespace
}  // namespace txinbox::test
