#include "delay_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace txinbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Delay = std::atomic<std::chrono::microseconds>;

void require(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(unsigned short port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) { require(fd >= 0, "socket"); }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// One direction of a connection. One thread reads and records the time. Another thread writes each chunk when its
/// delay is over. So a chunk that waits does not delay the reading of the next one.
class Pipe {
 public:
  Pipe(int from, int to, const Delay& delay)
      : reader_([&, from, this] { read(from, delay); }), writer_([=, this] { write(to); }) {}

 private:
  struct Chunk {
    Clock::time_point due;
    std::string bytes;  // empty at the end of the stream
  };

  void read(int from, const Delay& delay) {
    std::array<char, 65536> buffer{};
    for (;;) {
      const ssize_t size = ::recv(from, buffer.data(), buffer.size(), 0);
      const auto bytes = size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
      {
        const std::lock_guard lock(mutex_);
        chunks_.push({Clock::now() + delay.load(), bytes});
      }
      changed_.notify_one();
      if (size <= 0) return;
    }
  }

  void write(int to) {
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // otherwise each sleep is 50 us too long
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return !chunks_.empty(); });
      const Chunk chunk = std::move(chunks_.front());
      chunks_.pop();
      lock.unlock();
      std::this_thread::sleep_until(chunk.due);
      if (chunk.bytes.empty()) {
        ::shutdown(to, SHUT_WR);
        return;
      }
      for (std::size_t sent = 0; sent < chunk.bytes.size();) {
        const ssize_t size = ::send(to, chunk.bytes.data() + sent, chunk.bytes.size() - sent, MSG_NOSIGNAL);
        if (size <= 0) break;  // the other side has closed the connection; the other Pipe handles this
        sent += static_cast<std::size_t>(size);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<Chunk> chunks_;
  std::jthread reader_;
  std::jthread writer_;
};

struct Link {
  Link(int client_fd, unsigned short target, const Delay& delay)
      : client(client_fd),
        server(connected(target)),
        out(client.fd(), server.fd(), delay),
        back(server.fd(), client.fd(), delay) {
    send_at_once(client.fd());
  }

  static int connected(unsigned short port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    require(fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
    send_at_once(fd);
    return fd;
  }

  Socket client;
  Socket server;
  Pipe out;
  Pipe back;
};

}  // namespace

class DelayProxy::Impl {
 public:
  Impl(unsigned short target, std::chrono::microseconds one_way)
      : delay_(one_way), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    require(::bind(listener_.fd(), any, size) == 0 && ::listen(listener_.fd(), 64) == 0 &&
                ::getsockname(listener_.fd(), any, &size) == 0,
            "listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([=, this] {
      for (;;) {
        const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        links_.push_back(std::make_unique<Link>(fd, target, delay_));
      }
    });
  }

  ~Impl() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    acceptor_.join();
  }

  unsigned short port() const { return port_; }
  void set_one_way(std::chrono::microseconds one_way) { delay_ = one_way; }

 private:
  Delay delay_;
  Socket listener_;
  unsigned short port_ = 0;
  std::vector<std::unique_ptr<Link>> links_;
  std::jthread acceptor_;
};

DelayProxy::DelayProxy(unsigned short target_port, std::chrono::microseconds one_way)
    : impl_(std::make_unique<Impl>(target_port, one_way)) {}
DelayProxy::~DelayProxy() = default;

unsigned short DelayProxy::port() const noexcept { return impl_->port(); }
void DelayProxy::set_one_way(std::chrono::microseconds one_way) noexcept { impl_->set_one_way(one_way); }

}  // namespace txinbox::bench
