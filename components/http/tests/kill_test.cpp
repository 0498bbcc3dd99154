// The example's service is killed repeatedly. Meanwhile clients send each request three times at the same time, until
// all copies are answered.

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/http/httplib.hpp>

#include "service.hpp"
#include "support/counts.hpp"
#include "support/environment.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A port that is free when this function is called.
int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(bind(listener, generic, size) == 0);
  REQUIRE(getsockname(listener, generic, &size) == 0);
  close(listener);
  return ntohs(address.sin_port);
}

/// Starts order_api, and returns when it listens. Because the parent has threads, the child may only call exec.
pid_t start(const std::string& program, const std::string& url, int port) {
  std::array<int, 2> out{};
  REQUIRE(pipe(out.data()) == 0);
  const std::string port_text = std::to_string(port);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    close(out[0]);
    close(out[1]);
    execl(program.c_str(), program.c_str(), url.c_str(), port_text.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  char first = 0;
  REQUIRE(read(out[0], &first, 1) == 1);
  close(out[0]);
  return child;
}

/// The answers that all clients have got.
class Answers {
 public:
  void add(const std::string& key, const httplib::Response& response) {
    const std::lock_guard lock(mutex_);
    bodies_[key].insert(response.get_header_value("Location") + " " + response.body);
    ++count_;
  }
  std::size_t keys() const {
    const std::lock_guard lock(mutex_);
    return bodies_.size();
  }
  int count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  bool are_equal() const {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, bodies] : bodies_) {
      if (bodies.size() != 1) return false;
    }
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::set<std::string>> bodies_;
  int count_ = 0;
};

/// Repeats a request until it is answered.
void insist(int port, const std::string& key, Answers& answers, std::atomic<int>& broken) {
  for (;;) {
    httplib::Client client("127.0.0.1", port);
    client.set_read_timeout(60);
    const auto got = client.Post("/orders", {{"Idempotency-Key", key}}, R"({"sku":"tea"})", "application/json");
    if (got && got->status == 201) {
      answers.add(key, *got);
      return;
    }
    if (!got) ++broken;
    if (got) CHECK_MESSAGE((got->status == 409 || got->status == 503), got->body);
    std::this_thread::sleep_for(10ms);
  }
}

TEST_CASE("the example answers a body that it cannot read with 400" * doctest::test_suite("timed") *
          doctest::skip(!has_variable("TXINBOX_ORDER_API"))) {
  const TestDatabase db(TestDatabase::Tables::none);
  const int port = free_port();
  const pid_t service = start(variable("TXINBOX_ORDER_API"), db.url(), port);
  int tries = 0;
  for (const char* body : {"{\"sku\":", "no JSON", R"({"sku":["tea"]})", ""}) {
    CAPTURE(body);
    CHECK(post(port, "/orders", body, {{"Idempotency-Key", "k" + std::to_string(++tries)}}).status == 400);
  }
  CHECK(post(port, "/orders", "{}", {{"Idempotency-Key", "none"}}).status == 422);
  CHECK(post(port, "/orders", R"({"sku":"tea"})", {{"Idempotency-Key", "tea"}}).status == 201);
  kill(service, SIGKILL);
  waitpid(service, nullptr, 0);
  CHECK(db.number("select count(*) from t_order") == 1);
}

TEST_CASE("a service that is killed accepts each order once, and gives each client the same answer" *
          doctest::test_suite("timed") * doctest::skip(!has_variable("TXINBOX_ORDER_API"))) {
  const std::string program = variable("TXINBOX_ORDER_API");
  const TestDatabase db(TestDatabase::Tables::none);
  const int port = free_port();
  const int kills = 20;
  pid_t service = start(program, db.url(), port);
  std::atomic<bool> ended = false;
  std::atomic<int> next = 0;
  std::atomic<int> broken = 0;
  Answers answers;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&] {
        while (!ended) {
          const std::string key = "order" + std::to_string(++next);
          std::vector<std::jthread> copies;
          for (int copy = 0; copy < 3; ++copy) copies.emplace_back([&] { insist(port, key, answers, broken); });
        }
      });
    }
    std::minstd_rand random(7);
    for (int i = 0; i < kills; ++i) {
      const auto before = answers.keys();
      while (answers.keys() == before) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
      kill(service, SIGKILL);
      waitpid(service, nullptr, 0);
      service = start(program, db.url(), port);
    }
    ended = true;
  }
  kill(service, SIGKILL);
  waitpid(service, nullptr, 0);

  const auto keys = static_cast<long long>(answers.keys());
  count(kills, "services killed");
  count(keys, "keys");
  count(answers.count(), "answers");
  count(broken, "connections broken");
  CHECK(keys == next.load());
  CHECK(answers.count() == 3 * keys);
  CHECK(answers.are_equal());
  CHECK(db.number("select count(*) from t_order") == keys);
  CHECK(db.number("select max(no) from t_order") == keys);
  CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == keys);
}

}  // namespace
}  // namespace txinbox::test
