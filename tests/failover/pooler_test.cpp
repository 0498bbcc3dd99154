// PgBouncer in transaction mode: each transaction may run on another server connection, which has neither the prepared
// statements nor the settings of the previous one.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/soci/execute.hpp>
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

  void run(const std::string& sql) const { *direct_ << sql; }

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
  const ConsumerOptions options = {
      .retry = {.max_runs = 20},
      .listeners = {on_event([&](const Event& e) { retries += e.type == EventType::retry ? 1 : 0; })}};
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

/// An object that a handler keeps: a statement of its own, with a name that SOCI chooses.
struct KeptInsert {
  explicit KeptInsert(soci::session& sql)
      : statement((sql.prepare << "insert into effect values (:id)", soci::use(id))) {}
  std::string id;
  soci::statement statement;
};

/// Two services with one pool each, whose statements would have the same names at the server. `connections`: of each
/// pool. `is_kept`: the handler keeps a statement of its own instead of using `execute`.
void check_statements(std::size_t connections, bool is_kept) {
  CAPTURE(connections);
  CAPTURE(is_kept);
  constexpr int keys = 60;
  const PooledDatabase db;
  db.run("create table booked (service varchar(10), id varchar(255), amount integer)");
  const auto serve = [&](const std::string& service, int amount) {
    Pool pool = open_pool(db.url(), {.connections = connections});
    TxConsumer consumer(pool, service, {.retry = {.max_runs = 20}});
    const std::string book = "insert into booked values ('" + service + "', :id, " + std::to_string(amount) + ")";
    const std::string credit = "update booked set amount = amount + " + std::to_string(amount) + " where id = :id";
    for (int i = 0; i < keys; ++i) {
      const std::string key = service + std::to_string(i);
      const Result result = consumer.consume({.business_key = key}, [&](soci::session& sql, Delivery& delivery) {
        CHECK_FALSE(delivery.keeps_statements());
        CHECK(execute(sql, delivery, book, key) == 1);
        CHECK(execute(sql, delivery, credit, key) == 1);
        if (!is_kept) return;
        auto& kept = delivery.per_connection<KeptInsert>(sql);
        kept.id = key;
        kept.statement.execute(true);
      });
      CHECK(result.outcome == Outcome::consumed);
    }
  };
  std::thread credits(serve, "credit", 1);
  std::thread debits(serve, "debit", -1);
  credits.join();
  debits.join();
  CHECK(db.number("select count(*) from booked where service = 'credit' and amount = 2 and id like 'credit%'") == keys);
  CHECK(db.number("select count(*) from booked where service = 'debit' and amount = -2 and id like 'debit%'") == keys);
  CHECK(db.number("select count(*) from booked") == 2 * keys);
  CHECK(db.number("select count(distinct id) from effect") == (is_kept ? 2 * keys : 0));
}

TEST_CASE("through PgBouncer in transaction mode each handler runs its own statements") {
  for (const std::size_t connections : {1UL, 2UL}) {
    for (const bool is_kept : {false, true}) check_statements(connections, is_kept);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace txinbox::test
