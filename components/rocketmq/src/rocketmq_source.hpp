#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <txinbox/error.hpp>
#include <txinbox/rocketmq.hpp>
#include <txinbox/source.hpp>
#include <txinbox/version.hpp>

#include "client.hpp"
#include "held_messages.hpp"
#include "refusal.hpp"
#include "shared/reconnect_wait.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {

/// How long the source waits for the answer to a request. A request for messages waits longer.
inline constexpr std::chrono::seconds request_timeout{5};

/// All work is done on the thread of `poll`: it sends requests and handles the answers that have arrived. This is
/// enough, because `run` polls at least once a second.
///
/// rocketmq_source.cpp implements the members of `Source`, source_connection.cpp the connection, and
/// source_requests.cpp the requests for messages.
class RocketMqSource final : public Source {
 public:
  explicit RocketMqSource(const RocketMqOptions& options);
  ~RocketMqSource() override;

  std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) override;
  void acknowledge(std::span<const Incoming* const> messages) override;
  bool has_dead_letters() const override { return true; }
  void dead_letter(std::span<DeadLetter> letters) override;
  bool holds(const Incoming& message) const override { return held_.holds(message.ticket); }
  void pause(std::uint64_t lane) override { paused_.insert(lane); }
  void resume(std::uint64_t lane) override { paused_.erase(lane); }
  void give_back(const Incoming& message) override { give_back(message.ticket); }
  void wake() noexcept override { calls_.wake(); }
  SourceStatus status() override;
  void close() noexcept override;

 private:
  /// A proxy that serves some of the brokers.
  struct Proxy {
    std::unique_ptr<Client> client;
    bool is_ready = false;             ///< The proxy has confirmed our settings.
    Clock::time_point settings_due{};  ///< The deadline for this confirmation.
  };

  /// A broker that has queues of the topic.
  struct Broker {
    std::string target;                ///< gRPC's name of its proxy.
    int receiving = 0;                 ///< The number of requests for messages that wait at the broker.
    bool had_messages = false;         ///< Whether the last such request has returned messages.
    Clock::time_point next_receive{};  ///< The end of the pause after an error.
  };

  // The connection
  void connect_if_due();
  void ask_for_route();
  void take_route(const protocol::QueryRouteResponse& route);
  Proxy& proxy(const std::string& target);
  void take_settings(const std::string& target, const protocol::TelemetryCommand& command);
  void send_heartbeats();
  void check_settings_deadline();
  void report_if_connected();
  bool is_connected() const;
  bool expects_messages() const;
  void lost(const std::string& why);
  void failed(const grpc::Status& status);
  void refuse_after_patience(protocol::Code code);
  void refuse(const std::optional<Error>& why);

  // Requests for messages
  void receive_more(std::size_t max);
  void receive(const std::string& name, Broker& broker, std::size_t most);
  void received(const std::string& broker, protocol::Message&& message);
  void receive_ended(const std::string& broker, const std::string& target, const grpc::Status& status,
                     protocol::Code code, bool got_some);
  void send_acknowledgements();
  void acknowledged(const protocol::AckMessageResponse& answer,
                    const std::map<std::string, std::uint64_t>& ticket_of_handle);
  void prolong_if_due();
  bool change_invisible_time(std::uint64_t ticket, HeldMessage& message, std::chrono::milliseconds time);
  void forward(DeadLetter& letter, HeldMessage& message);
  void drop(std::uint64_t ticket, const char* why);
  void give_back(std::uint64_t ticket);
  Client* client_of(const HeldMessage& message);

  /// Handles the calls that have ended, or waits until one ends. Errors: the error of a refused request.
  void wait(Clock::time_point give_up);
  std::vector<Incoming> take(std::size_t max);

  const RocketMqOptions options_;
  const Subject subject_;
  const RocketMqServer server_;
  const std::string name_;
  std::uint64_t epoch_ = 0;               ///< The number of lost connections. Answers to earlier calls are ignored.
  std::map<std::string, Proxy> proxies_;  ///< The key is gRPC's name of the proxy.
  std::map<std::string, Broker> brokers_;
  HeldMessages held_;
  std::vector<std::uint64_t> done_;  ///< The tickets of messages that must be acknowledged at the broker.
  std::deque<Incoming> received_;    ///< The messages that `run` does not have yet.
  std::set<std::uint64_t> paused_;
  bool is_fifo_ = false;
  bool was_connected_ = false;
  bool is_reported_ = false;  ///< Whether the connection was reported to `run`.
  bool is_closed_ = false;
  bool warned_of_order_ = false;
  bool has_received_ = false;  ///< Whether the broker has answered a request for messages.
  int receive_errors_ = 0;     ///< The number of errors without a success between them.
  std::optional<Error> refusal_;
  std::optional<Clock::time_point> first_refusal_;  ///< The time of the first refusal before a connection.
  std::uint64_t reconnects_ = 0;
  component::ReconnectWait reconnect_{std::chrono::seconds(5)};
  Clock::time_point next_heartbeat_{};
  Clock::time_point next_route_{};
  Clock::time_point next_prolongation_{};
  Clock::time_point next_acknowledgement_{};  ///< The end of the pause after a failed acknowledgement.
  Calls calls_;                               ///< The last member: its calls use the others.
};

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
