// The chain of the examples: an order service, its relay, Kafka, and a stock service. All of them are killed
// repeatedly, also the broker. In the steps kafka-chain-…, the database server is killed, too.
//
// TXINBOX_BROKER_KILLS is the number of kills.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "kafka_broker.hpp"
#include "support/counts.hpp"
#include "support/environment.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

constexpr int items = 7;
constexpr int on_stock = 1'000'000;

/// One service process.
class Service {
 public:
  explicit Service(std::vector<std::string> words) : words_(std::move(words)) { start(); }
  ~Service() { end(SIGKILL); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void restart_after_kill() {
    end(SIGKILL);
    start();
  }

  /// Returns the exit status; -1 after a signal.
  int stop() { return end(SIGTERM); }

 private:
  /// Because this process has threads, the child may only call exec.
  void start() {
    std::vector<char*> arguments;
    for (std::string& word : words_) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }

  int end(int signal) {
    if (pid_ <= 0) return -1;
    kill(pid_, signal);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<std::string> words_;
  pid_t pid_ = -1;
};

std::string item(int number) { return "s" + std::to_string(number % items); }
int quantity(int number) { return 1 + number % 3; }

/// Publishes orders, each twice, until `done`. Returns the number of orders. It waits while too many orders are not
/// consumed yet, so that the services do not fall behind on a slow machine.
int publish_orders(KafkaBroker& broker, const std::string& topic, int least, const std::atomic<long long>& consumed,
                   const std::atomic<bool>& done) {
  constexpr int most_on_their_way = 2000;
  int number = 0;
  for (; number < least || !done; ++number) {
    while (number >= consumed + most_on_their_way && !done) std::this_thread::sleep_for(20ms);
    const std::string no = "o" + std::to_string(number);
    const std::string body =
        R"({"no":")" + no + R"(","sku":")" + item(number) + R"(","qty":)" + std::to_string(quantity(number)) + "}";
    for (int copy = 0; copy < 2; ++copy) broker.publish(topic, body, no);
    std::this_thread::sleep_for(5ms);
  }
  broker.flush();
  return number;
}

TEST_CASE("Kafka: a chain of services whose parts are killed keeps the sums and the order of each key" *
          doctest::skip(!has_variable("TXINBOX_CHAIN_ORDERS"))) {
  KafkaBroker broker;
  const std::string orders_url = broker.create("chain.orders") + "&dead_letters=chain.orders.dead";
  const std::string stock_url = broker.create("chain.stock") + "&dead_letters=chain.stock.dead";
  const TestDatabase orders;
  const TestDatabase stock;
  orders.run("create table t_item (sku varchar(60) primary key, version integer not null)");
  orders.run("create table t_order (no varchar(60) primary key, sku varchar(60) not null, qty integer not null)");
  stock.run(
      "create table t_stock (sku varchar(60) primary key, left_over integer not null, version integer not null, "
      "gaps integer not null)");
  for (int i = 0; i < items; ++i) {
    orders.run("insert into t_item values ('" + item(i) + "', 0)");
    stock.run("insert into t_stock values ('" + item(i) + "', " + std::to_string(on_stock) + ", 0, 0)");
  }
  const std::vector<std::string> order_service{variable("TXINBOX_CHAIN_ORDERS"), orders.url(), orders_url,
                                               "chain.stock"};
  const std::vector<std::string> stock_service{variable("TXINBOX_CHAIN_STOCK"), stock.url(), stock_url};
  std::array<Service, 2> order_services{Service(order_service), Service(order_service)};
  std::array<Service, 2> stock_services{Service(stock_service), Service(stock_service)};

  std::atomic<bool> done = false;
  std::atomic<long long> last_consumed = 0;
  int published = 0;
  std::thread publisher([&] { published = publish_orders(broker, "chain.orders", 500, last_consumed, done); });
  const auto consumed = [&] {
    return last_consumed = stock.number("select count(*) from txinbox_consumed_message where state = 'consumed'");
  };
  const int times = kills(8);
  std::minstd_rand random(7);
  bool goes_on = true;
  for (int i = 0; i < times && goes_on; ++i) {
    // The number of orders that the stock service has consumed before the kill.
    const auto before = consumed();
    const auto give_up = std::chrono::steady_clock::now() + 2min;
    while (consumed() < before + 5 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(20ms);
    goes_on = consumed() >= before + 5;
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 700));
    const auto victim = static_cast<std::size_t>(i);
    if (i % 8 == 3 && TestDatabase::can_restart_server()) {
      orders.restart_server();
      stock.disconnect();
    } else if (i % 8 == 7) {
      broker.kill();
      broker.start();
    } else if (i % 2 == 0) {
      order_services[victim / 2 % 2].restart_after_kill();
    } else {
      stock_services[victim / 2 % 2].restart_after_kill();
    }
  }
  CHECK(goes_on);
  done = true;
  publisher.join();

  const auto give_up = std::chrono::steady_clock::now() + 5min;
  // If a relay is killed, its message can be consumed before another relay takes over and removes the row.
  const auto is_done = [&] {
    return consumed() >= published && orders.number("select count(*) from txinbox_outbox_message") == 0;
  };
  while (!is_done() && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(50ms);
  for (Service& each : order_services) CHECK(each.stop() == 0);
  for (Service& each : stock_services) CHECK(each.stop() == 0);
  count(times, "parts of the chain killed");
  count(published, "orders");
  count(consumed(), "orders consumed by the second service");
  std::map<std::string, std::pair<int, int>> expected;  // quantity and number of orders
  for (int i = 0; i < published; ++i) {
    expected[item(i)].first += quantity(i);
    ++expected[item(i)].second;
  }
  CHECK(orders.number("select count(*) from t_order") == published);
  CHECK(orders.number("select count(*) from txinbox_outbox_message") == 0);
  CHECK(consumed() == published);
  CHECK(stock.number("select sum(gaps) from t_stock") == 0);
  for (const auto& each : expected) {
    const std::string& sku = each.first;
    const auto& sums = each.second;
    CAPTURE(sku);
    CHECK(orders.number("select version from t_item where sku = '" + sku + "'") == sums.second);
    CHECK(stock.number("select version from t_stock where sku = '" + sku + "'") == sums.second);
    CHECK(on_stock - stock.number("select left_over from t_stock where sku = '" + sku + "'") == sums.first);
  }
}

}  // namespace
}  // namespace txinbox::test
