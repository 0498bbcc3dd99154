#include "soak/workload.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <txinbox/inspect.hpp>
#include <txinbox/retention.hpp>
#include <txinbox/schema.hpp>
#include <txinbox/transaction.hpp>

#include "support/capabilities.hpp"

namespace txinbox::soak {
namespace {

using test::add_effect;
using test::has_server;
using test::on_mysql;
using test::on_postgresql;

constexpr std::size_t batch_size = 20;

struct Refused : std::runtime_error {
  Refused() : std::runtime_error("the handler refuses") {}
};

struct Prepared {
  explicit Prepared(soci::session& sql)
      : insert((sql.prepare << "insert into effect values (:id)", soci::use(id))),
        count((sql.prepare << "select count(*) from effect where id = :id", soci::use(id), soci::into(found))) {}

  std::string id;
  long long found = 0;
  soci::statement insert;
  soci::statement count;
};

void add_prepared(soci::session& sql, Delivery& delivery) {
  auto& prepared = delivery.per_connection<Prepared>(sql);
  prepared.id = delivery.message().business_key;
  prepared.count.execute();
  while (prepared.count.fetch()) {  // reads all rows: on SQLite, an open statement would block the commit
  }
  prepared.insert.execute(true);
}

void kill_own_connection(soci::session& sql) {
  if (on_mysql()) sql << "kill connection_id()";
  int ended = 0;
  if (on_postgresql()) sql << "select pg_terminate_backend(pg_backend_pid())::int", soci::into(ended);
}

ConsumerOptions quick(std::size_t recent_keys = 0) {
  ConsumerOptions options;
  options.retry.initial_backoff = std::chrono::milliseconds(1);
  options.recent_keys.capacity = recent_keys;
  return options;
}

}  // namespace

Shared::Shared(const test::EffectDatabase& database, Pool& connections)
    : db(database),
      pool(connections),
      consumer(connections, "soak", quick()),
      with_memory(connections, "soak-recent", quick(1000)) {}

Worker::Worker(Shared& shared, std::size_t number)
    : shared_(shared),
      number_(number),
      random_(static_cast<std::uint32_t>(number + 1)),
      session_(shared.db.session()),
      on_session_(*session_, "soak", quick()) {
  // txinbox refuses a caller's session whose settings are not safe.
  if (on_mysql()) *session_ << "set session transaction isolation level read committed";
}

std::span<const Worker::Way> Worker::ways() {
  static constexpr std::array all{
      Way{20, &Worker::consume_new},
      Way{20, &Worker::consume_known},
      Way{20, &Worker::consume_with_memory},
      Way{20, &Worker::consume_prepared},
      Way{10, &Worker::consume_on_own_session},
      Way{5, &Worker::consume_other_content},
      Way{5, &Worker::consume_and_store},
      Way{10, &Worker::batch},
      Way{10, &Worker::batch_prepared},
      Way{4, &Worker::batch_with_failures},
      Way{4, &Worker::batch_stopped},
      Way{5, &Worker::own_transaction},
      Way{5, &Worker::fail},
      Way{5, &Worker::fail_in_sql},
      Way{5, &Worker::fail_prepared},
      Way{1, &Worker::lose_connection},
      Way{1, &Worker::end_transaction},
      Way{1, &Worker::look_around},
  };
  return all;
}

void Worker::run(const std::stop_token& stop) {
  int total = 0;
  for (const Way& way : ways()) total += way.weight;
  while (!stop.stop_requested()) {
    auto at = static_cast<int>(random_() % static_cast<std::uint32_t>(total));
    for (const Way& way : ways()) {
      at -= way.weight;
      if (at >= 0) continue;
      (this->*way.run)();
      break;
    }
    // The test must run for a long time. It need not be fast.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Message Worker::new_message() {
  const long key = shared_.used_keys[number_]++;
  return {.business_key = std::to_string(number_) + "-" + std::to_string(key), .message_id = "id", .content = "c"};
}

// A key that one of the workers has delivered before, or is delivering now.
Message Worker::some_message() {
  const std::size_t worker = random_() % worker_count;
  const long used = shared_.used_keys[worker] + 1;
  const long key = static_cast<long>(random_()) % used;
  return {.business_key = std::to_string(worker) + "-" + std::to_string(key), .message_id = "id", .content = "c"};
}

void Worker::deliver(TxConsumer& consumer, const Message& message, const Handler& handler) {
  ++shared_.deliveries;
  try {
    (void)consumer.consume(message, handler);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the checks at the end find wrong effects
  }
}

void Worker::deliver_batch(TxConsumer& consumer, const Handler& handler, OnFailure on_failure) {
  std::vector<Message> messages;
  for (std::size_t i = 0; i < batch_size; ++i) messages.push_back(one_in(4) ? some_message() : new_message());
  if (one_in(2)) messages.push_back(messages.front());
  shared_.deliveries += static_cast<long>(messages.size());
  try {
    (void)consumer.consume_batch(messages, handler, on_failure);
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as above
  }
}

void Worker::consume_new() { deliver(shared_.consumer, new_message(), add_effect); }
void Worker::consume_known() { deliver(shared_.consumer, some_message(), add_effect); }
void Worker::consume_prepared() { deliver(shared_.consumer, new_message(), add_prepared); }
void Worker::consume_on_own_session() {
  deliver(on_session_, one_in(2) ? new_message() : some_message(), add_prepared);
}

void Worker::consume_with_memory() {
  Message message = one_in(2) ? new_message() : some_message();
  message.business_key += "-recent";
  deliver(shared_.with_memory, message, add_effect);
}

void Worker::consume_other_content() {
  Message message = some_message();
  message.content = "other";
  deliver(shared_.consumer, message, add_effect);
}

void Worker::consume_and_store() {
  deliver(shared_.consumer, new_message(), [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    delivery.store(std::string(1000, 'r'));
  });
}

void Worker::batch() { deliver_batch(shared_.consumer, add_effect, OnFailure::skip); }
void Worker::batch_prepared() { deliver_batch(shared_.consumer, add_prepared, OnFailure::stop); }

void Worker::batch_with_failures() {
  deliver_batch(
      shared_.consumer,
      [](soci::session& sql, Delivery& delivery) {
        add_prepared(sql, delivery);
        if (delivery.index() % 5 == 4) throw Refused();
        if (delivery.index() % 5 == 3) sql << "insert into nowhere values (1)";
      },
      OnFailure::skip);
}

void Worker::batch_stopped() {
  deliver_batch(
      on_session_,
      [](soci::session& sql, Delivery& delivery) {
        if (delivery.index() == batch_size / 2) throw Refused();
        add_effect(sql, delivery);
      },
      OnFailure::stop);
}

void Worker::own_transaction() {
  ++shared_.deliveries;
  const Message message = one_in(2) ? new_message() : some_message();
  const auto connection = shared_.pool.acquire();
  try {
    Transaction transaction(connection.session());
    if (transaction.claim("soak", message) != Claim::claimed) return;
    connection.session() << "insert into effect values (:id)", soci::use(message.business_key);
    if (one_in(2)) transaction.commit();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): as above
  }
}

void Worker::fail() {
  deliver(shared_.consumer, new_message(), [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    throw Refused();
  });
}

void Worker::fail_in_sql() {
  deliver(shared_.consumer, new_message(), [](soci::session& sql, Delivery& delivery) {
    add_effect(sql, delivery);
    sql << "insert into nowhere values (:id)", soci::use(delivery.message().business_key);
  });
}

// SOCI does not always free a statement that has failed.
void Worker::fail_prepared() {
  deliver(shared_.consumer, new_message(), [](soci::session& sql, Delivery& delivery) {
    auto& prepared = delivery.per_connection<Prepared>(sql);
    prepared.id = std::string(70'000, 'x');  // longer than the column, except on SQLite
    prepared.insert.execute(true);
    throw Refused();
  });
}

void Worker::lose_connection() {
  deliver(shared_.consumer, new_message(), [this](soci::session& sql, Delivery& delivery) {
    add_prepared(sql, delivery);
    if (delivery.attempt() > 1 || !has_server()) return;
    ++shared_.lost;
    kill_own_connection(sql);
  });
}

void Worker::end_transaction() {
  deliver(shared_.consumer, new_message(), [](soci::session& sql, Delivery&) { sql << "commit"; });
}

void Worker::look_around() {
  const auto connection = shared_.pool.acquire();
  soci::session& sql = connection.session();
  verify(sql);
  (void)find_message(sql, "soak", some_message().business_key);
  (void)diagnose(sql);
}

}  // namespace txinbox::soak
