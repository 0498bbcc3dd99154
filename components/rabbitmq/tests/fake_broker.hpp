#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <txinbox/rabbitmq.hpp>

namespace txinbox::test {

/// The misbehaviour of a `FakeBroker`.
struct Misbehaviour {
  /// The step at which it becomes silent: the class and the method of the client's request. {0, 0} is the beginning of
  /// a connection. It stays silent on later connections, too.
  std::pair<int, int> silent_at = {-1, -1};
  int connection = 0;             ///< The first connection on which it becomes silent.
  bool sends_half = false;        ///< Whether it sends half of the answer first.
  bool refuses_length = false;    ///< It closes the channel on which the length of the queue is asked.
  bool ends_connections = false;  ///< It closes each connection as soon as it is consumed.
};

/// A broker that speaks as much AMQP as the source needs: each consumer gets one message. It misbehaves as it is told.
class FakeBroker {
 public:
  explicit FakeBroker(Misbehaviour how) : how_(how), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_, plain, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, plain, &size) != 0) {
      throw std::runtime_error("listen");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~FakeBroker() {
    is_ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int client : clients_) ::shutdown(client, SHUT_RDWR);
    for (std::thread& each : threads_) each.join();
    for (const int client : clients_) ::close(client);
    ::close(listener_);
  }

  FakeBroker(const FakeBroker&) = delete;
  FakeBroker& operator=(const FakeBroker&) = delete;

  bool is_silent() const { return is_silent_; }
  int connections() const { return connections_; }

  RabbitMqOptions options() const {
    RabbitMqOptions options{.server = {.host = "127.0.0.1", .port = port_}, .queue = "queue"};
    options.dead_letters = "letters";
    return options;
  }

 private:
  static std::string number(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 0xff);
    return text;
  }
  static std::string frame(int type, std::uint16_t channel, const std::string& content) {
    return static_cast<char>(type) + number(channel, 2) + number(content.size(), 4) + content + '\xce';
  }
  static std::string method(std::uint16_t channel, int class_id, int id, const std::string& arguments = {}) {
    return frame(
        1, channel,
        number(static_cast<std::uint64_t>(class_id), 2) + number(static_cast<std::uint64_t>(id), 2) + arguments);
  }
  static std::string short_text(const std::string& text) { return static_cast<char>(text.size()) + text; }
  static std::string long_text(const std::string& text) { return number(text.size(), 4) + text; }

  static std::string message() {
    const std::string body(1000, 'x');
    return method(1, 60, 60, short_text("c") + number(1, 8) + number(0, 1) + short_text("") + short_text("queue")) +
           frame(2, 1, number(60, 2) + number(0, 2) + number(body.size(), 8) + number(0, 2)) + frame(3, 1, body);
  }

  std::string answer_to(std::pair<int, int> request, std::uint16_t channel) const {
    using Request = std::pair<int, int>;
    if (request == Request{0, 0}) {
      return method(0, 10, 10, number(9, 2) + long_text("") + long_text("PLAIN") + long_text("en_US"));
    }
    if (request == Request{10, 11}) return method(0, 10, 30, number(2047, 2) + number(131'072, 4) + number(60, 2));
    if (request == Request{10, 40}) return method(0, 10, 41, short_text(""));
    if (request == Request{10, 50}) return method(0, 10, 51);
    if (request == Request{20, 10}) return method(channel, 20, 11, long_text(""));
    if (request == Request{20, 40}) return method(channel, 20, 41);
    if (request == Request{50, 10}) {
      if (channel == 2 && how_.refuses_length) return method(2, 20, 40, number(405, 2) + short_text("") + number(0, 4));
      return method(channel, 50, 11, short_text("queue") + number(7, 4) + number(1, 4));
    }
    if (request == Request{60, 10}) return method(channel, 60, 11);
    if (request == Request{60, 20}) return method(channel, 60, 21, short_text("c"));
    if (request == Request{60, 40}) return method(channel, 60, 80, number(1, 8) + number(0, 1));
    if (request == Request{60, 60}) return message();
    if (request == Request{85, 10}) return method(channel, 85, 11);
    return {};
  }

  void accept_all() {
    while (true) {
      const int client = ::accept(listener_, nullptr, nullptr);
      if (client < 0 || is_ending_) {
        if (client >= 0) ::close(client);
        return;
      }
      clients_.push_back(client);
      threads_.emplace_back([this, client, index = connections_++] {
        serve(client, index);
        ::shutdown(client, SHUT_RDWR);
      });
    }
  }

  /// Returns false if the connection is over.
  static bool read(int client, char* data, std::size_t size) {
    return size == 0 || ::recv(client, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }

  /// Returns false if the broker is silent from now on.
  bool answer(int client, int index, std::pair<int, int> request, std::uint16_t channel) {
    std::string text = answer_to(request, channel);
    const bool ends_here = index >= how_.connection && request == how_.silent_at;
    if (ends_here) text.resize(how_.sends_half ? text.size() / 2 : 0);
    (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    if (ends_here) is_silent_ = true;
    return !ends_here;
  }

  void serve(int client, int index) {
    std::array<char, 8> header{};
    if (!read(client, header.data(), header.size())) return;
    bool answers = answer(client, index, {0, 0}, 0);
    std::string content;
    while (read(client, header.data(), 7)) {
      const auto byte = [](char c) { return static_cast<unsigned>(static_cast<unsigned char>(c)); };
      content.resize(byte(header[3]) << 24 | byte(header[4]) << 16 | byte(header[5]) << 8 | byte(header[6]));
      char end = 0;
      if (!read(client, content.data(), content.size()) || !read(client, &end, 1)) return;
      if (header[0] != 1 || content.size() < 4 || !answers) continue;
      const std::pair<int, int> request{static_cast<int>(byte(content[0]) << 8 | byte(content[1])),
                                        static_cast<int>(byte(content[2]) << 8 | byte(content[3]))};
      answers = answer(client, index, request, static_cast<std::uint16_t>(byte(header[1]) << 8 | byte(header[2])));
      if (request == std::pair{60, 20} && how_.ends_connections) return;
      if (request == std::pair{60, 20} && answers) answers = answer(client, index, {60, 60}, 1);
    }
  }

  const Misbehaviour how_;
  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_silent_ = false;
  std::atomic<bool> is_ending_ = false;
  std::atomic<int> connections_ = 0;
  std::vector<int> clients_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace txinbox::test
