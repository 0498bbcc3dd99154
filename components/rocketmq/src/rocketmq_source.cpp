#include "rocketmq_source.hpp"

#include <algorithm>
#include <utility>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace rocketmq {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds least_invisible = 10s;  // the broker's limits
constexpr milliseconds most_invisible = 12h;
constexpr milliseconds longest_close = 3s;
constexpr milliseconds longest_last_answer = 1s;

void check(const RocketMqOptions& options) {
  const auto refuse = [](const char* why) {
    throw Error(ErrorCode::invalid_argument, std::string("RocketMQ: ") + why);
  };
  if (options.topic.empty()) refuse("the topic is missing");
  if (options.group.empty()) refuse("the group is missing");
  if (options.topic == "%DLQ%" + options.group) {
    refuse("the topic is the group's own queue for dead letters: a dead letter would come back; take another group");
  }
  if (options.invisible < least_invisible || options.invisible > most_invisible) {
    refuse("invisible is not from 10 s to 12 h");
  }
  if (options.receives < 1 || options.receives > 16) refuse("receives is not from 1 to 16");
  if (options.dead_letter_timeout <= 0ms || options.dead_letter_timeout > std::chrono::days(1)) {
    refuse("dead_letter_timeout must be positive and at most a day");
  }
}

}  // namespace

RocketMqSource::RocketMqSource(const RocketMqOptions& options)
    : options_(options),
      subject_{.topic = options.topic, .group = options.group},
      server_(checked(options.server)),
      name_("rocketmq " + options.topic) {
  check(options);
  const Client readable(server_, Client::target_of(server_));  // throws if a file cannot be read
}

RocketMqSource::~RocketMqSource() { close(); }

std::vector<Incoming> RocketMqSource::poll(std::size_t max, milliseconds wait_time) {
  const auto give_up = Clock::now() + wait_time;
  wait(Clock::now());
  while (true) {
    connect_if_due();
    send_heartbeats();
    send_acknowledgements();
    prolong_if_due();
    if (max > 0) receive_more(max);
    std::vector<Incoming> taken = take(max);
    if (!taken.empty() || calls_.take_wake() || Clock::now() >= give_up) return taken;
    constexpr auto step = 200ms;  // then one of the calls above may be due again
    wait(std::min(give_up, Clock::now() + step));
  }
}

std::vector<Incoming> RocketMqSource::take(std::size_t max) {
  std::vector<Incoming> taken;
  for (auto at = received_.begin(); at != received_.end() && taken.size() < max;) {
    if (at->lane && paused_.contains(*at->lane)) {
      ++at;
      continue;
    }
    taken.push_back(std::move(*at));
    at = received_.erase(at);
  }
  return taken;
}

void RocketMqSource::wait(Clock::time_point give_up) {
  calls_.wait(give_up);
  if (!refusal_) return;
  const Error refusal = *std::exchange(refusal_, std::nullopt);
  throw Error(refusal);
}

void RocketMqSource::acknowledge(std::span<const Incoming* const> messages) {
  for (const Incoming* each : messages) {
    HeldMessage* const message = held_.find(each->ticket);
    if (message == nullptr) continue;
    if (message->is_dead) {
      held_.erase(each->ticket);
      continue;
    }
    message->is_done = true;
    done_.push_back(each->ticket);
  }
  send_acknowledgements();
}

void RocketMqSource::dead_letter(std::span<DeadLetter> letters) {
  const auto give_up = Clock::now() + options_.dead_letter_timeout;
  std::vector<DeadLetter*> open;
  for (DeadLetter& each : letters) open.push_back(&each);
  std::set<DeadLetter*> sent;
  while (!open.empty() && is_connected() && Clock::now() < give_up) {
    std::erase_if(open, [&](DeadLetter* each) {
      HeldMessage* const message = held_.find(each->incoming->ticket);
      if (message == nullptr) return true;  // the message is not held any more
      if (message->is_busy) return false;
      if (message->is_dead || sent.contains(each)) {
        each->confirmed = message->is_dead;
        return true;
      }
      forward(*each, *message);
      sent.insert(each);
      return false;
    });
    if (!open.empty()) wait(std::min(give_up, Clock::now() + 100ms));
  }
}

SourceStatus RocketMqSource::status() {
  return {.name = name_, .connected = is_connected(), .reconnects = reconnects_};
}

/// Whether a request for messages will probably be answered at once. The broker has then made messages invisible for an
/// answer that has not arrived.
bool RocketMqSource::expects_messages() const {
  return std::ranges::any_of(brokers_,
                             [](const auto& each) { return each.second.receiving > 0 && each.second.had_messages; });
}

void RocketMqSource::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  try {
    const auto give_up = Clock::now() + longest_close;
    const auto last_answer = Clock::now() + longest_last_answer;
    std::set<std::uint64_t> given_back;
    while (is_connected() && Clock::now() < give_up) {
      send_acknowledgements();
      for (auto& [ticket, message] : held_) {
        if (message.is_done || message.is_dead || message.is_busy) continue;
        if (given_back.insert(ticket).second) change_invisible_time(ticket, message, 0ms);
      }
      if (done_.empty() && !held_.is_any_busy() && (!expects_messages() || Clock::now() >= last_answer)) break;
      calls_.wait(std::min(give_up, Clock::now() + 100ms));
    }
    bool told = false;
    for (auto& [target, proxy] : proxies_) {
      protocol::NotifyClientTerminationRequest request;
      request.mutable_group()->set_name(options_.group);
      proxy.client->send(calls_, &protocol::MessagingService::Stub::PrepareAsyncNotifyClientTermination, request, 1s,
                         [&](const grpc::Status&, const auto&) { told = true; });
    }
    while (!proxies_.empty() && !told && Clock::now() < give_up) calls_.wait(give_up);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the broker redelivers the messages when their invisible time is over
  }
  ++epoch_;
  proxies_.clear();
  brokers_.clear();
}

}  // namespace rocketmq

std::unique_ptr<Source> open_rocketmq(const RocketMqOptions& options) {
  return std::make_unique<rocketmq::RocketMqSource>(options);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
