#include "faults/fault_proxy.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "support/child_process.hpp"

namespace txinbox::test {
namespace {

int local_port(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

}  // namespace

struct FaultProxy::Connection {
  std::array<pollfd, 2> ends;       ///< Of the client and of the server.
  std::atomic<bool> waits = false;  ///< All that was received has passed.

  /// Nothing is received that has not passed. It looks at the sockets first: what leaves them afterwards clears `waits`
  /// before.
  bool is_quiet() const {
    auto now = ends;
    return poll(now.data(), now.size(), 0) == 0 && waits;
  }
};

/// One direction of one connection.
struct FaultProxy::Way {
  Direction direction;
  int from;
  int to;
  PacketSplitter splitter;
  std::string waiting = {};  ///< Received, not passed on.
};

FaultProxy::FaultProxy(const std::string& url, bool mysql)
    : mysql_(mysql), relay_(url, [this](int client, int server) { serve(client, server); }) {
  url_ = relay_.url();
  // Packets can be told apart only in the clear.
  if (!mysql) url_ += (url_.find('?') == std::string::npos ? "?" : "&") + std::string("sslmode=disable");
}

bool FaultProxy::is_quiet() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(connections_, [](const Connection* each) { return each->is_quiet(); });
}

void FaultProxy::wait_until_quiet() const {
  constexpr int patience = 30'000;
  for (int waited = 0; !is_quiet(); ++waited) {
    if (waited == patience) throw std::runtime_error("the connections through the proxy do not become quiet");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void FaultProxy::count() {
  wait_until_quiet();
  const std::lock_guard lock(mutex_);
  passed_.clear();
  point_.reset();
  reached_ = false;
}

void FaultProxy::arm(FaultPoint point, Fault fault, std::function<bool()> at_fault) {
  count();
  const std::lock_guard lock(mutex_);
  point_ = point;
  fault_ = fault;
  at_fault_ = std::move(at_fault);
}

bool FaultProxy::reached() const {
  constexpr int patience = 30'000;
  for (int waited = 0; waited < patience && !reached_; ++waited) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return reached_;
}

std::vector<Passed> FaultProxy::passed() const {
  wait_until_quiet();
  const std::lock_guard lock(mutex_);
  return passed_;
}

std::size_t FaultProxy::passed_by_now() const {
  const std::lock_guard lock(mutex_);
  return passed_.size();
}

void FaultProxy::serve(int client, int server) {
  newest_port_ = local_port(server);
  Connection connection{{pollfd{client, POLLIN, 0}, pollfd{server, POLLIN, 0}}};
  {
    const std::lock_guard lock(mutex_);
    connections_.push_back(&connection);
  }
  pass_all(connection);
  const std::lock_guard lock(mutex_);
  std::erase(connections_, &connection);
}

void FaultProxy::pass_all(Connection& connection) {
  const int client = connection.ends[0].fd;
  const int server = connection.ends[1].fd;
  std::array<Way, 2> ways = {Way{Direction::to_server, client, server, {mysql_, Direction::to_server}},
                             Way{Direction::to_client, server, client, {mysql_, Direction::to_client}}};
  std::array<char, 65536> buffer{};
  auto ends = connection.ends;
  while (!relay_.ending()) {
    connection.waits = true;
    const int ready = poll(ends.data(), ends.size(), 5);
    connection.waits = false;
    if (ready <= 0) continue;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (ends[i].revents == 0) continue;
      const ssize_t size = recv(ways[i].from, buffer.data(), buffer.size(), 0);
      if (size <= 0) return;
      ways[i].waiting.append(buffer.data(), static_cast<std::size_t>(size));
      if (!pass(ways[i])) return;
    }
  }
}

/// Passes on the whole packets that are waiting. False: the connection is over.
bool FaultProxy::pass(Way& way) {
  for (;;) {
    const std::size_t size = way.splitter.packet_size(way.waiting);
    if (size == 0 || way.waiting.size() < size) return true;
    const auto spared = spared_bytes(way.direction, size);
    std::string_view rest(way.waiting.data(), size);
    if (spared) {
      send_all(way.to, rest.data(), *spared);
      rest.remove_prefix(*spared);
      if (!happen()) return false;
    }
    send_all(way.to, rest.data(), rest.size());
    way.splitter.passed();
    way.waiting.erase(0, size);
  }
}

/// How many bytes of the next packet pass before the fault, if it is this packet's.
std::optional<std::size_t> FaultProxy::spared_bytes(Direction direction, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const auto number = static_cast<int>(std::ranges::count(passed_, direction, &Passed::direction));
  passed_.push_back({direction, number, passed_.empty() || passed_.back().direction != direction});
  if (!point_ || reached_ || point_->direction != direction || point_->packet != number) return std::nullopt;
  return point_->part == FaultPoint::Part::none ? 0 : size / 2;
}

/// False: the connection is over.
bool FaultProxy::happen() {
  stalled_ = fault_ == Fault::stall;
  reached_ = true;
  switch (fault_) {
    case Fault::cut:
      return false;
    case Fault::kill_process:
      die();
    case Fault::run:
      return at_fault_();
    case Fault::stall:
      break;
  }
  while (stalled_ && !relay_.ending()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return false;
}

}  // namespace txinbox::test
