#include "faults/subject.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include <fmt/format.h>
#include <txinbox/native.hpp>
#include <txinbox/outbox.hpp>

#include "faults/fenced_handler.hpp"
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

/// Sets time-outs that are as short as those of a pool. With the server's defaults, a redelivery would wait for a
/// minute or longer.
void shorten_waits(soci::session& sql, Waits waits) {
  const std::string lock = std::to_string(waits.lock.count());
  const std::string statement = std::to_string(waits.statement.count());
  if (on_mysql()) {
    std::string version;
    sql << "select version()", soci::into(version);
    const bool mariadb = version.find("MariaDB") != std::string::npos;
    if (on_oceanbase()) {
      sql << "set ob_trx_lock_timeout = " + lock + "000000, ob_query_timeout = " + statement + "000000";
      return;
    }
    sql << "set innodb_lock_wait_timeout = " + lock + ", lock_wait_timeout = " + lock +
               (mariadb ? ", max_statement_time = " + statement : ", max_execution_time = " + statement + "000");
  }
  if (on_postgresql()) {
    sql << "set lock_timeout = '" + lock + "s'";
    sql << "set statement_timeout = '" + statement + "s'";
  }
}

/// Allows two runs of a delivery. So a fault is tested with a repeated run, and with a redelivery.
ConsumerOptions consumer_options(const Subject& subject) {
  ConsumerOptions options{.retry = {.max_runs = 2, .initial_backoff = std::chrono::milliseconds(0)}};
  if (subject.no_wait) options.claim_wait = std::chrono::milliseconds(0);
  return options;
}

/// The handler, and what the subject does after it.
Handler with_more(const Subject& subject, const Handler& handler) {
  if (subject.sends) {
    return [&](soci::session& sql, Delivery& delivery) {
      handler(sql, delivery);
      const std::string& key = delivery.message().business_key;
      Outbox::add(sql, {.topic = "faults", .key = key, .payload = "sent for " + key});
    };
  }
  if (subject.refuses) {
    return [&](soci::session& sql, Delivery& delivery) {
      handler(sql, delivery);
      delivery.refuse("stored for " + delivery.message().business_key);
    };
  }
  return handler;
}

LeaseTerms lease_terms(Waits waits) { return {.length = on_sqlite3() ? std::chrono::minutes(1) : waits.lease}; }

}  // namespace

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = {
      {.name = "a message", .messages = 1, .batch = false, .pooled = true},
      {.name = "a batch of three", .messages = 3, .batch = true, .pooled = true},
      {.name = "a message on a caller's session", .messages = 1, .batch = false, .pooled = false},
      {.name = "a batch of three on a caller's session", .messages = 3, .batch = true, .pooled = false},
      {.name = "a message under a lease", .messages = 1, .batch = false, .pooled = true, .leased = true},
      {.name = "a message on a native connection", .messages = 1, .batch = false, .pooled = false, .native = true},
      {.name = "a batch of three at once",
       .messages = 3,
       .batch = true,
       .pooled = true,
       .handlers = Subject::Handlers::at_once},
      {.name = "a batch of three with a pair of handlers",
       .messages = 3,
       .batch = true,
       .pooled = true,
       .handlers = Subject::Handlers::pair},
      {.name = "a message that sends another", .messages = 1, .batch = false, .pooled = true, .sends = true},
      {.name = "a message that is refused", .messages = 1, .batch = false, .pooled = true, .refuses = true},
      {.name = "a message that does not wait", .messages = 1, .batch = false, .pooled = true, .no_wait = true},
  };
  return all;
}

std::span<const Subject> basic_subjects() { return std::span(subjects()).first(6); }
std::span<const Subject> transaction_subjects() { return std::span(subjects()).first(4); }

std::vector<Message> messages_for(const Subject& subject, int number) {
  const std::string prefix =
      std::to_string(&subject - subjects().data()) + " case " + std::to_string(number) + " message ";
  std::vector<Message> messages;
  for (std::size_t i = 0; i < subject.messages; ++i) messages.push_back({.business_key = prefix + std::to_string(i)});
  return messages;
}

Service::Service(const Subject& subject, const std::string& url, Waits waits) : subject_(subject) {
  if (subject.leased) {
    pool_.emplace(open_pool(url, pool_options(waits)));
    lease_consumer_.emplace(*pool_, consumer_name, lease_terms(waits), consumer_options(subject));
  } else if (subject.pooled) {
    pool_.emplace(open_pool(url, pool_options(waits)));
    consumer_.emplace(*pool_, consumer_name, consumer_options(subject));
  } else {
    session_ = TestDatabase::session_through(url);
    shorten_waits(*session_, waits);
    if (subject.native) {
      consumer_.emplace(native_handle(*session_), consumer_name, consumer_options(subject));
    } else {
      consumer_.emplace(*session_, consumer_name, consumer_options(subject));
    }
  }
}

Service::~Service() = default;

std::vector<Action> Service::deliver(std::span<const Message> messages, const Handler& handler) {
  results_ = consume(messages, with_more(subject_, handler));
  std::vector<Action> actions;
  for (const Result& each : results_) actions.push_back(action_for(each));
  return actions;
}

std::vector<Result> Service::consume(std::span<const Message> messages, const Handler& handler) {
  std::vector<Result> results;
  if (!subject_.batch) {
    for (const Message& each : messages) results.push_back(consume_one(each, handler));
    return results;
  }
  try {
    return consume_batch(messages, handler);
  } catch (...) {
    return {messages.size(), Result{.outcome = Outcome::failed, .error = std::current_exception()}};
  }
}

std::vector<Result> Service::consume_batch(std::span<const Message> messages, const Handler& handler) {
  const BatchHandler all = [&](soci::session& sql, std::span<Delivery> deliveries) {
    for (Delivery& each : deliveries) handler(sql, each);
  };
  switch (subject_.handlers) {
    case Subject::Handlers::at_once:
      return consumer_->consume_batch(messages, all);
    case Subject::Handlers::pair:
      return consumer_->consume_batch(messages, BatchHandlers{all, handler});
    default:
      return consumer_->consume_batch(messages, handler);
  }
}

Result Service::consume_one(const Message& message, const Handler& handler) {
  try {
    if (lease_consumer_) return lease_consumer_->consume(message, fenced(*pool_, handler));
    if (subject_.native) return consumer_->consume(message, [&](NativeHandle, Delivery& d) { handler(*session_, d); });
    return consumer_->consume(message, handler);
  } catch (...) {
    return {.outcome = Outcome::failed, .error = std::current_exception()};
  }
}

/// Repeats the delivery after a transient error, and after a lease that expired too early. On a slow machine, both can
/// occur when many services warm up at the same time.
void Service::warm_up(std::chrono::milliseconds valid_for) {
  static std::atomic<int> warmed_up = 0;
  Message message{.business_key = "warm-up"};
  // A duplicate sends nothing. Under a lease, it does not prepare all statements that a delivery uses.
  if (subject_.sends || subject_.leased) {
    message.business_key += fmt::format(" {} of process {}", ++warmed_up, getpid());
    message.valid_for = valid_for;
  }
  const auto consume = [&] {
    if (subject_.sends) return consumer_->consume(message, with_more(subject_, [](soci::session&, Delivery&) {}));
    if (lease_consumer_) return lease_consumer_->consume(message, [](Lease& lease) { lease.renew(); });
    if (subject_.native) return consumer_->consume(message, [](NativeHandle) {});
    return consumer_->consume(message, [](soci::session&, Delivery&) {});
  };
  for (int tries = 0;; ++tries) {
    try {
      if (consume().outcome != Outcome::in_progress) return;
    } catch (const Error& e) {
      if (tries == 20 || e.code() != ErrorCode::lease_lost) throw;
    } catch (...) {
      if (tries == 20 || !is_transient(std::current_exception())) throw;
    }
  }
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
