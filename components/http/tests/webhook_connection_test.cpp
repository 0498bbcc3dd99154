// The HTTP publisher of the outbox, with servers that misbehave.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <httplib.h>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>

#include "raw_server.hpp"
#include "shared/sigpipe_block.hpp"

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

Publisher publisher_for(const HttpPublisherOptions& options) {
  return http_publisher(options, http::httplib_sender(options));
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
  const Publisher publish = publisher_for({.url = server.url()});
  for (int i = 0; i < 4; ++i) {
    const PublishResult result = publish(with_payload(std::string(4UL * 1024 * 1024, 'x')))[0];
    CHECK(result.status != PublishStatus::confirmed);
  }
  CHECK(sigpipes == 0);
}

}  // namespace
}  // namespace txinbox::test
