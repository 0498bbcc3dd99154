// The connection of a RocketMQ source: it connects, sends heartbeats to the proxies, and connects again.

#include <algorithm>
#include <utility>

#include "rocketmq_source.hpp"
#include "streams.hpp"
#include "trust.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto settings_patience = 5s;
constexpr auto heartbeat_interval = 10s;
constexpr auto route_interval = 30s;
constexpr auto heartbeat_patience = 10s;

bool can_read(const protocol::MessageQueue& queue) {
  return queue.permission() == protocol::READ || queue.permission() == protocol::READ_WRITE;
}

bool is_fifo_topic(const protocol::QueryRouteResponse& route) {
  return std::ranges::any_of(route.message_queues(), [](const protocol::MessageQueue& queue) {
    return std::ranges::count(queue.accept_message_types(), static_cast<int>(protocol::FIFO)) > 0;
  });
}

}  // namespace

void RocketMqSource::connect_if_due() {
  check_settings_deadline();
  const auto now = Clock::now();
  if (proxies_.empty()) {
    if (now < reconnect_.next_try()) return;
    ++epoch_;
    proxy(Client::target_of(server_));
    ask_for_route();
  } else if (is_connected() && now >= next_route_) {
    ask_for_route();  // the list of brokers can change
  }
}

void RocketMqSource::ask_for_route() {
  next_route_ = Clock::now() + route_interval;
  protocol::QueryRouteRequest request;
  request.mutable_topic()->set_name(options_.topic);
  *request.mutable_endpoints() = endpoints_of(server_);
  Client& client = *proxies_.at(Client::target_of(server_)).client;
  client.send(calls_, &protocol::MessagingService::Stub::PrepareAsyncQueryRoute, request, request_timeout,
              [this, epoch = epoch_](const grpc::Status& status, const protocol::QueryRouteResponse& route) {
                if (epoch != epoch_) return;
                if (!status.ok()) return failed(status);
                if (route.status().code() == protocol::OK) return take_route(route);
                refuse_after_patience(route.status().code());
                lost(text_of(route.status().code()));
              });
}

void RocketMqSource::take_route(const protocol::QueryRouteResponse& route) {
  std::map<std::string, Broker> brokers;
  for (const protocol::MessageQueue& queue : route.message_queues()) {
    if (!can_read(queue)) continue;
    const std::string target = target_of(queue.broker().endpoints());
    if (target.empty()) continue;
    const auto known = brokers_.find(queue.broker().name());
    Broker& broker = brokers[queue.broker().name()];
    if (known != brokers_.end() && known->second.target == target) broker = known->second;
    broker.target = target;
    proxy(target);
  }
  brokers_ = std::move(brokers);
  if (brokers_.empty()) return lost("no broker has a queue of the topic that can be read");
  report_if_connected();
  if (is_fifo_topic(route) && is_reported_ && !is_fifo_ && !std::exchange(warned_of_order_, true)) {
    report(SourceEventType::warning,
           "the topic is of the type FIFO, but the group is not ordered: messages lose their "
           "order; set it with mqadmin updateSubGroup -o true");
  }
}

/// The proxy with this name. A new proxy gets the settings.
RocketMqSource::Proxy& RocketMqSource::proxy(const std::string& target) {
  const auto [at, is_new] = proxies_.try_emplace(target);
  if (!is_new) return at->second;
  at->second.settings_due = Clock::now() + settings_patience;
  at->second.client = std::make_unique<Client>(server_, target);
  protocol::Settings settings;
  settings.set_client_type(protocol::SIMPLE_CONSUMER);
  *settings.mutable_access_point() = endpoints_of(server_);
  settings.mutable_request_timeout()->set_seconds(request_timeout.count());
  *settings.mutable_user_agent() = user_agent();
  protocol::Subscription& subscription = *settings.mutable_subscription();
  subscription.mutable_group()->set_name(options_.group);
  protocol::SubscriptionEntry& entry = *subscription.add_subscriptions();
  entry.mutable_topic()->set_name(options_.topic);
  entry.mutable_expression()->set_type(protocol::TAG);
  entry.mutable_expression()->set_expression(options_.tags);
  Telemetry::start(
      calls_, *at->second.client, settings,
      [this, target, epoch = epoch_](const protocol::TelemetryCommand& command) {
        if (epoch == epoch_ && command.has_settings()) take_settings(target, command);
      },
      [this, epoch = epoch_](const grpc::Status& status) {
        if (epoch != epoch_) return;
        if (status.ok()) return lost("the proxy has ended the connection");
        failed(status);
      });
  return at->second;
}

void RocketMqSource::take_settings(const std::string& target, const protocol::TelemetryCommand& command) {
  const protocol::Code code = command.status().code();
  if (command.has_status() && code != protocol::OK && code != protocol::CODE_UNSPECIFIED) {
    refuse_after_patience(code);
    return lost(text_of(code));
  }
  proxies_.at(target).is_ready = true;
  is_fifo_ = command.settings().subscription().fifo();
  report_if_connected();
}

/// Checks the deadline for the settings. The stream of the settings lasts as long as the connection, so the stream
/// itself has no deadline.
void RocketMqSource::check_settings_deadline() {
  const auto now = Clock::now();
  for (const auto& [target, proxy] : proxies_) {
    if (proxy.is_ready || now < proxy.settings_due) continue;
    return lost("the proxy " + target + " does not answer with the settings");
  }
}

/// Called for the route and for the settings, because they can arrive in any order.
void RocketMqSource::report_if_connected() {
  if (!is_connected() || std::exchange(is_reported_, true)) return;
  reconnect_.reset();
  next_heartbeat_ = Clock::now();
  next_route_ = Clock::now();  // now it is known whether the group is ordered
  if (std::exchange(was_connected_, true)) ++reconnects_;
  report(SourceEventType::connected, "connected to " + address_of(server_));
}

bool RocketMqSource::is_connected() const {
  return !brokers_.empty() && std::ranges::all_of(proxies_, [](const auto& each) { return each.second.is_ready; });
}

void RocketMqSource::send_heartbeats() {
  if (!is_connected() || Clock::now() < next_heartbeat_) return;
  next_heartbeat_ = Clock::now() + heartbeat_interval;
  protocol::HeartbeatRequest request;
  request.mutable_group()->set_name(options_.group);
  request.set_client_type(protocol::SIMPLE_CONSUMER);
  for (auto& [target, proxy] : proxies_) {
    proxy.client->send(calls_, &protocol::MessagingService::Stub::PrepareAsyncHeartbeat, request, heartbeat_patience,
                       [this, epoch = epoch_](const grpc::Status& status, const protocol::HeartbeatResponse& answer) {
                         if (epoch != epoch_) return;
                         if (!status.ok()) return failed(status);
                         // The proxy has lost the settings.
                         if (answer.status().code() == protocol::UNRECOGNIZED_CLIENT_TYPE) {
                           lost(text_of(answer.status().code()));
                         }
                       });
  }
}

/// Keeps the held messages, because their receipt handles are also valid on another connection.
void RocketMqSource::lost(const std::string& why) {
  ++epoch_;
  calls_.cancel_all();
  proxies_.clear();
  brokers_.clear();
  held_.forget_requests();
  const bool is_first = reconnect_.is_reset();
  reconnect_.failed(Clock::now());
  if (refusal_) return;  // `poll` throws it
  if (std::exchange(is_reported_, false)) {
    report(SourceEventType::disconnected, why + "; connecting again");
  } else if (is_first) {
    report(SourceEventType::warning, why + "; the source keeps trying");
  }
}

void RocketMqSource::failed(const grpc::Status& status) {
  if (!was_connected_) refuse(refusal_of(status));
  if (!was_connected_ && server_.tls && status.error_code() == grpc::StatusCode::UNAVAILABLE && is_untrusted(server_)) {
    refuse(Error(ErrorCode::access_refused,
                 "RocketMQ: the certificate of " + address_of(server_) +
                     " cannot be trusted: another CA has signed it, or it is for another host; see ca_file"));
  }
  lost(text_of(status));
}

/// Refuses only if the code has been repeated for some seconds, because a broker that has just started does not know
/// its topics yet. After the first connection it never refuses, because a missing topic may be created again.
void RocketMqSource::refuse_after_patience(protocol::Code code) {
  constexpr auto patience = 10s;
  const auto refusal = refusal_of(code, subject_);
  if (was_connected_ || !refusal) return;
  if (!first_refusal_) first_refusal_ = Clock::now();
  if (refusal->code() == ErrorCode::access_refused || Clock::now() >= *first_refusal_ + patience) refuse(refusal);
}

void RocketMqSource::refuse(const std::optional<Error>& why) {
  if (why && !refusal_) refusal_ = why;
}

}  // namespace rocketmq
TXINBOX_NAMESPACE_END
}  // namespace txinbox
