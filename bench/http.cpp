// Measures the cost of a guard of HTTP requests: a service on the loopback interface with and without the guard.
// bench/run.sh runs this program in the same way as txinbox_bench.

#include <httplib.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <soci/soci.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <txinbox/http.hpp>
#include <txinbox/http/httplib.hpp>
#include <txinbox/http/httplib_sender.hpp>
#include <txinbox/http_publisher.hpp>
#include <txinbox/txinbox.hpp>

#include "database.hpp"
#include "effects.hpp"
#include "measure.hpp"
#include "outbox.hpp"
#include "program.hpp"

namespace txinbox::bench {
namespace {

using Json = nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr std::size_t connections = 8;

/// The work of both routes. The body is the number of the row.
http::Response work(soci::session& sql, const http::Request& request) {
  const int row = std::stoi(request.body);
  sql << "UPDATE bench_account SET n = n + 1 WHERE id = :row", soci::use(row);
  if (http::find_header(request.headers, "Slow")) std::this_thread::sleep_for(2s);
  return {.status = 201, .headers = {{"Content-Type", "application/json"}}, .body = fmt::format("{{\"row\":{}}}", row)};
}

/// The service. POST /guarded runs its handler once for each key, and POST /plain each time. GET / needs no database.
class Service {
 public:
  explicit Service(const Database& database)
      : pool_(database.pool(connections)),
        consumer_(pool_, "POST /guarded", {.claim_wait = 0ms}),
        guard_(consumer_, [](const http::Request&) { return std::string("bench"); }) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(2 * connections); };
    server_.set_keep_alive_max_count(1'000'000'000);
    server_.set_tcp_nodelay(true);
    server_.Post("/guarded", http::httplib_route(guard_, work));
    server_.Post("/plain", [this](const httplib::Request& from, httplib::Response& to) { plain(from, to); });
    server_.Get("/", [](const httplib::Request&, httplib::Response& to) { to.status = 200; });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
  }
  ~Service() { server_.stop(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  int port() const noexcept { return port_; }

 private:
  void plain(const httplib::Request& from, httplib::Response& to) {
    const http::Request request{.method = from.method, .target = from.target, .body = from.body};
    Connection connection = pool_.acquire();
    soci::transaction transaction(connection.session());
    http::Response response = work(connection.session(), request);
    transaction.commit();
    to.status = response.status;
    to.set_content(response.body, "application/json");
  }

  Pool pool_;
  TxConsumer consumer_;
  http::Guard guard_;
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

class Client {
 public:
  explicit Client(int port) : client_("127.0.0.1", port) {
    client_.set_keep_alive(true);
    client_.set_tcp_nodelay(true);
    client_.set_read_timeout(60);
  }

  /// Returns the status.
  int post(const std::string& path, const std::string& key, int row, bool slow = false) {
    httplib::Headers headers{{"Idempotency-Key", key}};
    if (slow) headers.emplace("Slow", "1");
    return status_of(client_.Post(path.c_str(), headers, std::to_string(row), "text/plain"));
  }

  int get() { return status_of(client_.Get("/")); }

 private:
  static int status_of(const httplib::Result& result) {
    if (!result) throw std::runtime_error("no answer: " + httplib::to_string(result.error()));
    return result->status;
  }

  httplib::Client client_;
};

void expect(int status, int expected) {
  if (status != expected) throw std::runtime_error(fmt::format("status {} instead of {}", status, expected));
}

/// Sends requests with new keys on all connections for this time. Returns the number of requests.
long long run_for(std::chrono::milliseconds time, std::vector<std::unique_ptr<Client>>& clients,
                  const std::string& path, int round) {
  std::atomic<bool> stop{false};
  std::atomic<long long> done{0};
  std::vector<std::exception_ptr> errors(clients.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t c = 0; c < clients.size(); ++c) {
      threads.emplace_back([&, c] {
        try {
          for (int i = 0; !stop; ++i) {
            const int row = 1 + (i * static_cast<int>(clients.size()) + static_cast<int>(c)) % account_rows;
            expect(clients[c]->post(path, fmt::format("{}-{}-{}", round, c, i), row), 201);
            ++done;
          }
        } catch (...) {
          errors[c] = std::current_exception();
        }
      });
    }
    std::this_thread::sleep_for(time);
    stop = true;
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return done;
}

struct Options {
  int rounds = 9;
  long slot_ms = 1'000;
  int in_flight = 50;
};

Json measure_rates(const Service& service, Effects& effects, const Options& options) {
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < connections; ++i) clients.push_back(std::make_unique<Client>(service.port()));
  const std::vector<std::string> routes = {"plain", "guarded"};
  Json rates = {{"plain", Json::array()}, {"guarded", Json::array()}};
  Progress progress("rounds", options.rounds);
  for (int round = -1; round < options.rounds; ++round) {  // the first opens connections and warms up
    rotated(routes.size(), round + 1, [&](std::size_t i) {
      const auto start = Clock::now();
      const long long count = run_for(std::chrono::milliseconds(options.slot_ms), clients, "/" + routes[i], round);
      const double seconds = microseconds_since(start) / 1e6;
      effects.expect_updates(routes[i], count);
      if (round >= 0) rates[routes[i]].push_back(static_cast<double>(count) / seconds);
    });
    if (round >= 0) progress.step();
  }
  return rates;
}

/// Measures requests while a handler runs for two seconds: copies of its request, and other requests.
Json measure_in_flight(const Service& service, const Target& target, Effects& effects, const Options& options) {
  Json duplicates = Json::array();
  Json others = Json::array();
  std::exception_ptr error;
  std::jthread original([&] {
    try {
      expect(Client(service.port()).post("/guarded", "slow", 1, true), 201);
    } catch (...) {
      error = std::current_exception();
    }
  });
  std::this_thread::sleep_for(300ms);
  Client client(service.port());
  // On SQLite, a request that writes must wait for the transaction.
  const bool writes = target.name != "sqlite3";
  const auto timed = [](Json& into, const std::function<void()>& request) {
    const auto start = Clock::now();
    request();
    into.push_back(microseconds_since(start) / 1e3);
  };
  const auto begin = Clock::now();
  int sent = 0;
  for (; sent < options.in_flight && Clock::now() - begin < 1s; ++sent) {
    timed(duplicates, [&] { expect(client.post("/guarded", "slow", 1), 409); });
    timed(others, [&] {
      expect(writes ? client.post("/guarded", fmt::format("other-{}", sent), 2) : client.get(), writes ? 201 : 200);
    });
  }
  original.join();
  if (error) std::rethrow_exception(error);
  effects.expect_updates("in flight", 1 + (writes ? sent : 0));
  return {{"duplicate_ms", duplicates}, {"other_ms", others}, {"others_write", writes}};
}

/// Measures requests with new keys, one after the other on a connection that stays open.
Json measure_one_connection(const Service& service, Effects& effects, const Options& options) {
  Client client(service.port());
  expect(client.get(), 200);
  Json times = Json::array();
  const auto begin = Clock::now();
  while (Clock::now() - begin < std::chrono::milliseconds(options.slot_ms)) {
    const auto start = Clock::now();
    expect(client.post("/guarded", fmt::format("one-{}", times.size()), 1), 201);
    times.push_back(microseconds_since(start) / 1e3);
  }
  effects.expect_updates("one connection", static_cast<long long>(times.size()));
  return times;
}

/// A receiver of webhooks that only confirms.
class Receiver {
 public:
  Receiver() {
    server_.set_keep_alive_max_count(1'000'000'000);
    server_.set_tcp_nodelay(true);
    server_.Post("/events", [this](const httplib::Request&, httplib::Response& to) {
      ++received_;
      to.status = 204;
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
  }
  ~Receiver() { server_.stop(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/events", port_); }
  long long received() const noexcept { return received_; }

 private:
  httplib::Server server_;
  std::atomic<long long> received_ = 0;
  int port_ = 0;
  std::jthread thread_;
};

/// Measures the rate of messages to a webhook, in calls of 100 messages.
Json measure_webhook(const Options& options) {
  Receiver receiver;
  const HttpPublisherOptions publisher{.url = receiver.url()};
  const Publisher publish = http_publisher(publisher, http::httplib_sender(publisher));
  std::vector<OutgoingMessage> messages;
  for (unsigned long long i = 0; i < 100; ++i) {
    messages.push_back({.topic = "orders", .payload = outbox_payload(), .id = outbox_id(i)});
  }
  Json rates = Json::array();
  long long sent = 0;
  for (int round = -1; round < options.rounds; ++round) {  // the first opens the connection
    const auto start = Clock::now();
    long long count = 0;
    do {
      for (const PublishResult& each : publish(messages)) {
        if (each.status != PublishStatus::confirmed) throw std::runtime_error("not confirmed: " + each.error);
        ++count;
      }
    } while (Clock::now() - start < std::chrono::milliseconds(options.slot_ms));
    if (round >= 0) rates.push_back(static_cast<double>(count) / (microseconds_since(start) / 1e6));
    sent += count;
  }
  if (receiver.received() != sent) throw std::runtime_error("the webhook has got another number of messages");
  return rates;
}

Json measure(const Target& target, const Options& options) {
  const Database database(target);
  Pool checking = database.pool(1);
  const auto connection = checking.acquire();
  Effects effects(connection);
  const Service service(database);
  return {{"requests_per_second", measure_rates(service, effects, options)},
          {"in_flight", measure_in_flight(service, target, effects, options)},
          {"request_ms", measure_one_connection(service, effects, options)},
          {"webhook_per_second", measure_webhook(options)}};
}

}  // namespace
}  // namespace txinbox::bench

int main(int argc, char** argv) {
  using namespace txinbox::bench;
  CLI::App app("Measures what a guard of HTTP requests costs");
  Target target;
  Options options;
  add_target(app, target, {"sqlite3", "mariadb", "postgresql"});
  app.add_option("--rounds", options.rounds);
  app.add_option("--slot-ms", options.slot_ms);
  CLI11_PARSE(app, argc, argv);
  return print_figures("txinbox_bench_http", [&] { return measure(target, options); });
}
