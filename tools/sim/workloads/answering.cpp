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

/// Of a handler that runs under a lease. It is as long as a client waits for an answer.
constexpr std::chrono::milliseconds lease_time = 3s;

constexpr auto scope_of_all = "everybody";

/// The business key of the row.
std::string key_of_row(const std::string& key) { return fmt::format("{}/{}", scope_of_all, key); }

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
    if (!client.has_answer && client.sends_at <= threads().now()) send(key, client);
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
  for (int i = 0; i < copies && !is_lost; ++i) {
    Requests& requests = requests_[threads().any_of(requests_.size())];
    const std::scoped_lock lock(requests.mutex);
    requests.keys.push_back(key);
    requests.arrives.notify_one();
  }
}

void Answering::serve(std::size_t service, const std::stop_token& stop) {
  Pool pool = world_.open_pool(2);
  const http::ScopeOf scope = [](const http::Request&) { return scope_of_all; };
  const bool has_heartbeat = world_.plan.has_heartbeat;
  if (world_.plan.answers_under_lease) {
    LeaseConsumer consumer(pool, "http", {.length = lease_time, .heartbeat = has_heartbeat ? lease_time / 3 : 0ms},
                           {.stop = stop});
    http::Guard guard(consumer, scope);
    return serve_with(service, stop, [&](const http::Request& request) {
      return guard.handle(request,
                          [this](Lease& lease, const http::Request& its) { return handle_under_lease(lease, its); });
    });
  }
  TxConsumer consumer(pool, "http", {.claim_wait = has_heartbeat ? 100ms : 0ms, .stop = stop});
  http::Guard guard(consumer, scope);
  serve_with(service, stop, [&](const http::Request& request) {
    return guard.handle(request,
                        [this](::sqlite3* connection, const http::Request& its) { return handle(connection, its); });
  });
}

void Answering::serve_with(std::size_t service, const std::stop_token& stop,
                           const std::function<http::Response(const http::Request&)>& answer) {
  Requests& requests = requests_[service];
  std::unique_lock lock(requests.mutex);
  requests.keys.clear();  // the connections of the process before this one have ended
  while (requests.arrives.wait(lock, stop, [&] { return !requests.keys.empty(); }) && !stop.stop_requested()) {
    const std::string key = std::move(requests.keys.front());
    requests.keys.pop_front();
    lock.unlock();
    ++deliveries_;
    const http::Response response = answer(request_of(key));
    threads().kill_point();
    answered(key, response);
    lock.lock();
  }
}

http::Response Answering::handle(::sqlite3* connection, const http::Request& request) {
  const std::string& key = request.body;
  Client& client = clients_.at(key);
  ++client.runs;
  world_.story.tell(key, "{} runs {} for the {}. time", threads().current_process().name(), key, client.runs);
  ServerSession::of(connection).execute(World::insert_effect(key));
  return act(key, client);
}

http::Response Answering::handle_under_lease(Lease& lease, const http::Request& request) {
  const std::string& key = request.body;
  Client& client = clients_.at(key);
  ++client.runs;
  world_.story.tell(key, "{} runs {} for the {}. time, with the fence {}", threads().current_process().name(), key,
                    client.runs, lease.fence());
  const LeaseRun run(world_, key, client.leases, lease);
  threads().sleep_for(std::chrono::milliseconds(threads().any_of(20)));
  http::Response response = act(key, client);
  ++client.returns;
  return response;
}

http::Response Answering::act(const std::string& key, Client& client) const {
  http::Response response{.status = 201, .body = fmt::format("{} in run {}", key, client.runs)};
  const bool is_first = client.runs == 1;
  switch (client.act) {
    case Act::fails_at_first:
      if (is_first) throw std::runtime_error("the handler fails");
      break;
    case Act::is_slow:
      if (is_first) threads().sleep_for(world_.plan.answers_under_lease ? 2 * lease_time : 2s);
      break;
    case Act::refuses:
      ++client.returns;
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
  if (const auto problem = wrong_effects(key, client)) {
    world_.story.wrong(key, "is answered {} with {}", response.status, *problem);
  }
  if (!client.given.empty() && client.given != answer && !may_differ(key, client)) {
    world_.story.wrong(key, "is answered '{}' after '{}'", answer, client.given);
  }
  client.given = answer;
  client.leases.set_done();
  if (!is_lost_on_the_way()) client.has_answer = true;
}

/// How the effects of a request that is answered are not those of its handler.
std::optional<std::string> Answering::wrong_effects(const std::string& key, const Client& client) {
  if (world_.plan.answers_under_lease) {
    if (client.returns == 0) return "a handler that has never returned";
    if (world_.had_failover_since(client.leases.since) || world_.is_consumed("http", key_of_row(key)))
      return std::nullopt;
    return "no durable row";
  }
  const std::size_t effects = world_.effects_of(key);
  const std::size_t right = client.act == Act::refuses ? 0 : 1;
  if (effects == right || (effects < right && world_.lost.contains(key))) return std::nullopt;
  return fmt::format("{} effects", effects);
}

/// Whether the database may have lost the answer after a client got it.
bool Answering::may_differ(const std::string& key, const Client& client) const {
  if (world_.plan.answers_under_lease) return world_.had_failover_since(client.leases.since);
  return world_.lost.contains(key) || (client.act == Act::refuses && world_.had_failover_since(client.leases.since));
}

std::optional<Waiting> Answering::waiting(bool /*stuck*/) {
  if (clients_.size() < world_.plan.requests) return Waiting{"", "requests that are not sent yet"};
  for (const auto& [key, client] : clients_) {
    if (!client.has_answer) return Waiting{key, "a request without an answer"};
  }
  return std::nullopt;
}

void Answering::check_end() {
  for (const auto& [key, client] : clients_) {
    if (const auto problem = wrong_effects(key, client)) world_.story.wrong(key, "has {} at the end", *problem);
  }
}

}  // namespace txinbox::sim
