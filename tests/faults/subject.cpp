#include "faults/subject.hpp"

#include <atomic>
#include <chrono>

#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

PoolOptions pool_options(Waits waits) {
  using std::chrono::seconds;
  return {.connections = 1,
          .acquire_timeout = seconds(20),
          .connect_timeout = seconds(2),
          .lock_timeout = waits.lock,
          .statement_timeout = waits.statement};
}

/// As short as a pool's: by itself a server makes a redelivery wait a minute, or without end.
void shorten_waits(soci::session& sql, Waits waits) {
  const std::string lock = std::to_string(waits.lock.count());
  const std::string statement = std::to_string(waits.statement.count());
  if (on_mysql()) {
    sql << "set innodb_lock_wait_timeout = " + lock + ", lock_wait_timeout = " + lock +
               ", max_statement_time = " + statement;
  }
  if (on_postgresql()) {
    sql << "set lock_timeout = '" + lock + "s'";
    sql << "set statement_timeout = '" + statement + "s'";
  }
}

/// One run more than none: what a fault leaves to the next run is tried, and what it leaves to the
/// next delivery as well.
TxConsumerOptions consumer_options() {
  return {.retry = {.max_attempts = 2, .initial_backoff = std::chrono::milliseconds(0)}};
}

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {.name = "a message", .messages = 1, .batch = false, .pooled = true},
      {.name = "a batch of three", .messages = 3, .batch = true, .pooled = true},
      {.name = "a message on a caller's session", .messages = 1, .batch = false, .pooled = false},
      {.name = "a batch of three on a caller's session", .messages = 3, .batch = true, .pooled = false},
  };
  return all;
}

std::vector<Message> messages_for(const Subject& subject, int number) {
  std::vector<Message> messages;
  for (std::size_t i = 0; i < subject.messages; ++i) {
    messages.push_back({.business_key = "case " + std::to_string(number) + " message " + std::to_string(i)});
  }
  return messages;
}

Service::Service(const Subject& subject, const std::string& url, Waits waits) : batch_(subject.batch) {
  if (subject.pooled) {
    pool_.emplace(open_pool(url, pool_options(waits)));
    consumer_.emplace(*pool_, consumer_name, consumer_options());
  } else {
    session_ = TestDatabase::session_through(url);
    shorten_waits(*session_, waits);
    consumer_.emplace(*session_, consumer_name, consumer_options());
  }
}

Service::~Service() = default;

std::vector<Action> Service::deliver(std::span<const Message> messages, const Handler& handler) {
  std::vector<Action> actions;
  if (!batch_) {
    for (const Message& each : messages) actions.push_back(deliver_one(each, handler));
    return actions;
  }
  try {
    for (const Result& each : consumer_->consume_batch(messages, handler)) actions.push_back(action_for(each));
  } catch (...) {
    actions.assign(messages.size(), action_for(std::current_exception()));
  }
  return actions;
}

Action Service::deliver_one(const Message& message, const Handler& handler) {
  try {
    return action_for(consumer_->consume(message, handler));
  } catch (...) {
    return action_for(std::current_exception());
  }
}

void Service::warm_up() {
  (void)consumer_->consume({.business_key = "warm-up"}, [](soci::session&, Delivery&) {});
}

void Service::with_session(const std::function<void(soci::session&)>& use) {
  if (session_) {
    use(*session_);
  } else {
    const Connection connection = pool_->acquire();
    use(connection.session());
  }
}

void write_row(soci::session& sql, const Message& message, int part) {
  const std::string id = message.business_key + "/" + std::to_string(part);
  sql << "insert into effect values (:id)", soci::use(id);
}

void write_two_rows(soci::session& sql, Delivery& delivery) {
  write_row(sql, delivery.message(), 1);
  delivery.store("stored for " + delivery.message().business_key);
  write_row(sql, delivery.message(), 2);
}

}  // namespace txinbox::test
