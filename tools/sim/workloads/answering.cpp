#include "sim/workloads/answering.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/txinbox.hpp>

namespace txinbox::sim {

using namespace std::chrono_literals;

namespace {

/// The time after which a client sends its request again.
constexpr SimTime patience = 3s;

http::Request request_of(const std::string& key) {
  return {.method = "POST", .target = "/orders", .headers = {{"Idempotency-Key", key}}, .body = key};
}

}  // namespace

std::vector<std::string> Answering::services() const {
  std::vector<std::string> names;
  add_names(names, "server", world_.plan.servers);
  return names;
}

void Answering::step() {
  while (clients_.size() < due_by_now(world_, world_.plan.requests)) {
    const std::array special{Act::fails_at_first, Act::is_slow, Act::refuses};
    const Act act =
        threads().happens(world_.plan.special_rate) ? special[threads().any_of(special.size())] : Act::succeeds;
    clients_.emplace(fmt::format("request{}", clients_.size()), Client{.act = act});
  }
  for (auto& [key, client] : clients_) {
    if (client.answer.empty() && client.sends_at <= threads().now()) send(key, client);
  }
}

/// Whether this request or answer is lost.
bool Answering::is_lost_on_the_way() const {
  return !world_.is_quiet && threads().happens(world_.plan.broker.lose_acknowledgement);
}

/// Sends the request to any server. It may be lost, and it may come twice.
void Answering::send(const std::string& key, Client& client) {
  client.sends_at = threads().now() + patience;
  const bool is_lost = is_lost_on_the_way();
  const int copies = threads().happens(world_.plan.resend_rate) ? 2 : 1;
  for (int i = 0; i < copies && !is_lost; ++i) arrived_[threads().any_of(arrived_.size())].push_back(key);
}

void Answering::serve(std::size_t service, const std::stop_token& stop) {
  arrived_[service].clear();  // the connections of the process before this one have ended
  Pool pool = world_.open_pool(2);
  TxConsumer consumer(pool, "http", {.claim_wait = world_.plan.has_heartbeat ? 100ms : 0ms, .stop = stop});
  http::Guard guard(consumer, [](const http::Request&) { return "everybody"; });
  while (!stop.stop_requested()) {
    if (arrived_[service].empty()) {
      threads().sleep_for(10ms);
      continue;
    }
    const std::string key = std::move(arrived_[service].front());
    arrived_[service].pop_front();
    ++deliveries_;
    const http::Response response = guard.handle(
        request_of(key),
        [this](::sqlite3* connection, const http::Request& request) { return handle(connection, request); });
    threads().kill_point();
    answered(key, response);
  }
}

http::Response Answering::handle(::sqlite3* connection, const http::Request& request) {
  const std::string& key = request.body;
  Client& client = clients_.at(key);
  const int run = ++client.runs;
  world_.story.tell(key, "{} runs {} for the {}. time", threads().current_process().name(), key, run);
  ServerSession::of(connection).execute(World::insert_effect(key));
  http::Response response{.status = 201, .body = fmt::format("{} in run {}", key, run)};
  switch (client.act) {
    case Act::fails_at_first:
      if (run == 1) throw std::runtime_error("the handler fails");
      break;
    case Act::is_slow:
      threads().sleep_for(2s);
      break;
    case Act::refuses:
      throw http::Refusal({.status = 422, .body = response.body});
    case Act::succeeds:
      break;
  }
  return response;
}

/// All answers of a request are the same, but those that ask the client to send it again.
void Answering::answered(const std::string& key, const http::Response& response) {
  Client& client = clients_.at(key);
  const std::string answer = fmt::format("{} {}", response.status, response.body);
  world_.story.tell(key, "{} answers {}", threads().current_process().name(), answer.substr(0, 60));
  const bool is_final = response.status < 500 && response.status != 409;
  if (!is_final) return;
  const bool is_refusal = client.act == Act::refuses;
  if ((response.status == 422) != is_refusal) world_.story.wrong(key, "is answered {}", answer);
  const std::size_t effects = world_.effects_of(key);
  if (effects != (is_refusal ? 0 : 1) && !world_.lost.contains(key)) {
    world_.story.wrong(key, "is answered {} with {} effects", response.status, effects);
  }
  const bool may_differ = world_.lost.contains(key) || (is_refusal && world_.plan.failover_every > 0s);
  if (!client.answer.empty() && client.answer != answer && !may_differ) {
    world_.story.wrong(key, "is answered '{}' after '{}'", answer, client.answer);
  }
  const bool is_lost = is_lost_on_the_way();
  if (!is_lost) client.answer = answer;
}

std::optional<Waiting> Answering::waiting(bool /*stuck*/) {
  if (clients_.size() < world_.plan.requests) return Waiting{"", "requests that are not sent yet"};
  for (const auto& [key, client] : clients_) {
    if (client.answer.empty()) return Waiting{key, "a request without an answer"};
  }
  return std::nullopt;
}

void Answering::check_end() {
  for (const auto& [key, client] : clients_) {
    const std::size_t effects = world_.effects_of(key);
    const std::size_t right = client.act == Act::refuses ? 0 : 1;
    if (effects != right && !(world_.lost.contains(key) && effects < right)) {
      world_.story.wrong(key, "has {} effects at the end", effects);
    }
  }
}

}  // namespace txinbox::sim
