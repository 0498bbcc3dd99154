// PgBouncer in transaction mode: each transaction may run on another server connection, which has neither the prepared
// statements nor the settings of the previous one.

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "base/token.hpp"
#include "base/url.hpp"
#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

/// A separate database. The pooler selects it by its name in the URL. A schema would need a setting of the session.
class PooledDatabase {
 public:
  PooledDatabase() : name_("pooled_" + detail::Token::random().hex()) {
    *TestDatabase::session_through(std::getenv("TXINBOX_TEST_URL")) << "create database " + name_;
    direct_ = TestDatabase::session_through(with_name(std::getenv("TXINBOX_TEST_URL")));
    migrate(*direct_);
    *direct_ << "create table effect (id varchar(255))";
  }

  std::string url() const { return with_name(std::getenv("TXINBOX_TEST_POOLER_URL")); }

  long long number(const std::string& query) const {
    long long value = 0;
    *direct_ << query, soci::into(value);
    return value;
  }

 private:
  std::string with_name(const std::string& url) const { return url.substr(0, url.rfind('/') + 1) + name_; }

  std::string name_;
  std::unique_ptr<soci::session> direct_;
};

/// Several threads deliver each key, one by one and in batches, until it is acknowledged.
void check_load(bool pooled) {
  constexpr int threads = 6;
  constexpr int keys = 300;
  constexpr int batch = 10;
  const PooledDatabase db;
  Pool pool = open_pool(db.url(), {.connections = threads});
  std::atomic<int> retries = 0;
  std::atomic<int> deliveries = 0;
  const TxConsumerOptions options = {.retry = {.max_attempts = 20}, .observer = [&](const Event& e) {
                                       retries += e.type == EventType::retry ? 1 : 0;
                                     }};
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      const auto own = pooled ? nullptr : TestDatabase::session_through(db.url());
      TxConsumer consumer = pooled ? TxConsumer(pool, "svc", options) : TxConsumer(*own, "svc", options);
      for (int i = 0; i < keys; i += batch) {
        std::vector<Message> messages;
        for (int k = i; k < i + batch; ++k) messages.push_back({.business_key = fmt::format("key{}", k)});
        deliveries += batch;
        if ((i / batch + t) % 2 == 0) {
          for (const Result& each : consumer.consume_batch(messages, add_effect)) {
            CHECK(action_for(each) == Action::acknowledge);
          }
          continue;
        }
        for (const Message& each : messages) {
          CHECK(action_for(consumer.consume(each, add_effect)) == Action::acknowledge);
        }
      }
    });
  }
  for (std::thread& each : workers) each.join();
  CHECK(db.number("select count(*) from effect") == keys);
  CHECK(db.number("select count(distinct id) from effect") == keys);
  CHECK(db.number("select count(*) from txinbox_consumed_message where state = 'consumed'") == keys);
  fmt::print("    {} keys, {} deliveries, {} retries\n", keys, deliveries.load(), retries.load());
}

TEST_SUITE_BEGIN("pooler");

TEST_CASE("through PgBouncer in transaction mode each key takes effect once: a pool") { check_load(true); }

TEST_CASE("through PgBouncer in transaction mode each key takes effect once: sessions of the caller") {
  check_load(false);
}

TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
