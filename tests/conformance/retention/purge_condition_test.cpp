// Which rows a purge removes depends only on the condition of the DELETE, not on the locks before it.

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/old_rows.hpp"
#include "support/relay.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A proxy that removes FOR UPDATE from the statements for MariaDB or MySQL, because some servers with MySQL's protocol
/// take no lock for it. It calls `before_delete` before it forwards a DELETE of consumed messages.
class LocklessServer {
 public:
  LocklessServer(const std::string& url, std::function<void()> before_delete)
      : before_delete_(std::move(before_delete)),
        relay_(url, [this](int client, int server) { serve(client, server); }) {}

  const std::string& url() const { return relay_.url(); }
  int unlocked() const { return unlocked_; }

 private:
  void serve(int client, int server) {
    std::array<char, 65536> buffer{};
    std::string said;
    std::array<pollfd, 2> ends = {pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}};
    while (!relay_.ending()) {
      if (poll(ends.data(), ends.size(), 20) <= 0) continue;
      const bool from_server = ends[1].revents != 0;
      const ssize_t size = recv(from_server ? server : client, buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      if (from_server) {
        send_all(client, buffer.data(), static_cast<std::size_t>(size));
        continue;
      }
      said.append(buffer.data(), static_cast<std::size_t>(size));
      while (said.size() >= packet_size(said)) {
        pass_on(server, said.substr(0, packet_size(said)));
        said.erase(0, packet_size(said));
      }
    }
  }

  /// The size of the first packet, which is in its first three bytes.
  static std::size_t packet_size(const std::string& said) {
    constexpr std::size_t header = 4;
    if (said.size() < header) return header;
    const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(static_cast<unsigned char>(said[at])); };
    return header + byte(0) + (byte(1) << 8U) + (byte(2) << 16U);
  }

  void pass_on(int server, std::string packet) {
    const auto lock = packet.find("FOR UPDATE");
    if (lock != std::string::npos) {
      packet.replace(lock, std::string::npos, packet.size() - lock, ' ');
      ++unlocked_;
    }
    if (packet.find("DELETE") != std::string::npos && packet.find("txinbox_consumed_message") != std::string::npos) {
      before_delete_();
    }
    send_all(server, packet.data(), packet.size());
  }

  std::function<void()> before_delete_;
  std::atomic<int> unlocked_ = 0;
  Relay relay_;  ///< The last member, because its threads use the other members.
};

TEST_CASE("a row whose time or state changes before the DELETE stays, even if no lock protects it" *
          doctest::skip(!on_mysql())) {
  const OldRows db;
  db.add("svc", 20, 25h);
  const LocklessServer server(db.url(), [&] {
    db.run("update txinbox_consumed_message set consumed_at = utc_timestamp(6) where business_key = 'k3'");
    db.run("update txinbox_consumed_message set state = 'torn' where business_key = 'k5'");
  });
  Pool pool = open_pool(server.url(), {.connections = 1});
  CHECK(purge(pool.acquire(), 24h) == 18);
  CHECK(server.unlocked() > 0);
  CHECK(db.number("select count(*) from txinbox_consumed_message where business_key in ('k3', 'k5')") == 2);
}

}  // namespace
}  // namespace txinbox::test
