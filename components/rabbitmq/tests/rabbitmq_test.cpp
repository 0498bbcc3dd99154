// A RabbitMQ source with a real broker. The consumer runs in this process.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "rabbitmq_broker.hpp"
#include "support/effects.hpp"
#include "support/source_subject.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

RunOptions until_idle() { return {.backoff = 5ms, .max_backoff = 50ms, .idle_exit = 1s}; }

MessageOf body_is_key() {
  return [](const Incoming& in) {
    return Message{.business_key = std::string(in.body), .message_id = std::string(in.id)};
  };
}

TEST_CASE("RabbitMQ: a handler gets the message as it was sent, and a dead letter has the same content") {
  RabbitMqBroker broker;
  (void)broker.create("records");
  amqp_table_entry_t entries[3] = {};
  entries[0].key = amqp_cstring_bytes("text");
  entries[0].value.kind = AMQP_FIELD_KIND_UTF8;
  entries[0].value.value.bytes = amqp_cstring_bytes("value");
  entries[1].key = amqp_cstring_bytes("number");
  entries[1].value.kind = AMQP_FIELD_KIND_I64;
  entries[1].value.value.i64 = -7;
  entries[2].key = amqp_cstring_bytes("yes");
  entries[2].value.kind = AMQP_FIELD_KIND_BOOLEAN;
  entries[2].value.value.boolean = 1;
  amqp_basic_properties_t properties{};
  properties._flags =
      AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
  properties.headers = {.num_entries = 3, .entries = entries};
  properties.message_id = amqp_cstring_bytes("id-1");
  properties.type = amqp_cstring_bytes("order");
  properties.timestamp = 1'700'000'000;
  broker.publish("records", "body", &properties);
  broker.publish("records", "", nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto check_headers = [](const Incoming& in) {
    CHECK(in.body == "body");
    CHECK(in.id == "id-1");
    CHECK_FALSE(in.key);
    CHECK_FALSE(in.lane);
    CHECK(in.deliveries == 1);
    CHECK(in.header("text") == "value");
    CHECK(in.header("number") == "-7");
    CHECK(in.header("yes") == "true");
    CHECK(in.header("message-id") == "id-1");
    CHECK(in.header("type") == "order");
    CHECK(in.sent == std::chrono::system_clock::time_point(1'700'000'000s));
  };
  int runs = 0;
  {
    const auto source = open_rabbitmq(RabbitMqBroker::options("records"));
    const RunSummary summary = run(
        *source, consumer, body_is_key(),
        [&](soci::session&, Delivery& delivery) {
          ++runs;
          check_headers(delivery.incoming());
          throw Error(ErrorCode::rejected, "never");
        },
        until_idle());
    CHECK(runs >= 1);
    CHECK(summary.dead_letters == 2);  // an empty body cannot be a key
  }
  CHECK(broker.ready("records") == 0);
  CHECK(broker.ready("records.dead") == 2);
  RabbitMqOptions dead = RabbitMqBroker::options("records.dead");
  dead.dead_letters = "records";
  const auto source = open_rabbitmq(dead);
  TxConsumer reader(pool, "reader");
  std::map<std::string, std::string> reasons;
  (void)run(
      *source, reader,
      [](const Incoming& in) {
        return Message{.business_key = "k" + std::string(in.header("txinbox-origin").value_or(""))};
      },
      [&](soci::session&, Delivery& delivery) {
        const Incoming& in = delivery.incoming();
        reasons[std::string(in.header("txinbox-reason").value_or(""))] = in.header("txinbox-key").value_or("");
        CHECK(in.header("txinbox-consumer") == "svc");
        if (!in.body.empty()) check_headers(in);
      },
      until_idle());
  CHECK(reasons == std::map<std::string, std::string>{{"invalid_key", ""}, {"rejected", "body"}});
}

TEST_CASE("RabbitMQ: a message that fails waits in the source, others continue, and a slow handler does no harm") {
  RabbitMqBroker broker;
  (void)broker.create("poison");
  for (int i = 0; i < 200; ++i) broker.publish("poison", "m" + std::to_string(i), nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  RabbitMqOptions options = RabbitMqBroker::options("poison");
  options.heartbeat = 4s;
  const auto source = open_rabbitmq(options);
  RunOptions run_options = until_idle();
  run_options.batch = 10;
  int lost = 0;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::disconnected) ++lost;
  });
  TxConsumer consumer(pool, "svc", {.listeners = {listener}});
  int failures = 0;
  bool was_slow = false;
  const RunSummary summary = run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        const std::string& key = delivery.message().business_key;
        if (key == "m50" && !std::exchange(was_slow, true)) std::this_thread::sleep_for(13s);
        if (key == "m7" && ++failures < 20) throw std::runtime_error("not yet");
        CHECK(delivery.incoming().deliveries == 1);
      },
      run_options);
  CHECK(lost == 0);
  CHECK(summary.received == 200);
  CHECK(summary.consumed == 200);
  CHECK(summary.retries >= 9);
  CHECK(broker.ready("poison") == 0);
}

TEST_CASE("RabbitMQ: retries do not use up the delivery limit of a quorum queue") {
  RabbitMqBroker broker;
  (void)broker.create_quorum("quorum", 2);
  broker.publish("quorum", "m", nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto source = open_rabbitmq(RabbitMqBroker::options("quorum"));
  int failures = 0;
  const RunSummary summary = run(
      *source, consumer, body_is_key(),
      [&](soci::session& sql, Delivery& delivery) {
        add_effect(sql, delivery);
        if (++failures < 12) throw std::runtime_error("not yet");
      },
      until_idle());
  CHECK(summary.consumed == 1);
  CHECK(summary.dropped == 0);
}

TEST_CASE("RabbitMQ: unacknowledged messages return at once") {
  RabbitMqBroker broker;
  (void)broker.create("stops");
  for (int i = 0; i < 500; ++i) broker.publish("stops", "m" + std::to_string(i), nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  std::uint64_t duplicates = 0;
  for (int round = 0; round < 10 && db.effects() < 500; ++round) {
    std::stop_source stop;
    TxConsumer consumer(pool, "svc", {.stop = stop.get_token()});
    const auto source = open_rabbitmq(RabbitMqBroker::options("stops"));
    RunOptions options = until_idle();
    options.batch = 20;
    int left = 90;
    duplicates += run(
                      *source, consumer, body_is_key(),
                      [&](soci::session& sql, Delivery& delivery) {
                        add_effect(sql, delivery);
                        if (--left == 0) stop.request_stop();
                      },
                      options)
                      .already_consumed;
  }
  CHECK(db.effects() == 500);
  CHECK(duplicates == 0);
  CHECK(broker.ready("stops") == 0);
}

TEST_CASE("RabbitMQ: messages behind one that is not acknowledged are acknowledged alone") {
  RabbitMqBroker broker;
  (void)broker.create("gaps");
  for (const char* body : {"m0", "m1", "m2", "m3", "m4"}) broker.publish("gaps", body, "");
  broker.flush();
  {
    const auto source = open_rabbitmq(RabbitMqBroker::options("gaps"));
    const std::vector<Incoming> taken = take(*source, 5);
    for (const std::size_t at : {3U, 1U}) acknowledge(*source, std::span(taken).subspan(at, 1));
    acknowledge(*source, std::span(taken).first(1));  // now m0 and m1 are a prefix
    source->close();
  }
  const auto source = open_rabbitmq(RabbitMqBroker::options("gaps"));
  CHECK(bodies_of(take(*source, 2)) == "m2 m4 ");
}

TEST_CASE("RabbitMQ: a queue is consumed again after it was deleted and created; a dead letter waits for its queue") {
  RabbitMqBroker broker;
  (void)broker.create("deleted");
  for (const char* body : {"", "m1", "m2"}) broker.publish("deleted", body, nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  const auto source = open_rabbitmq(RabbitMqBroker::options("deleted"));
  std::stop_source stop;
  RunOptions options = until_idle();
  options.idle_exit.reset();
  bool is_first = true;
  int refused = 0;
  int disconnected = 0;
  const auto give_up = std::chrono::steady_clock::now() + 1min;
  options.status_interval = 1s;
  const auto listener = on_event([&](const RunEvent& event) {
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::connected &&
        std::exchange(is_first, false)) {
      broker.remove("deleted.dead");
    }
    if (event.type == RunEventType::dead_letter_failed && ++refused == 2) {
      CHECK(broker.ready("deleted") == 0);
      (void)broker.create("deleted");  // creates the dead-letter queue again
    }
    if (event.type == RunEventType::dead_letter) {
      broker.remove("deleted");
      (void)broker.create("deleted");
      broker.publish("deleted", "m3", nullptr);
      broker.flush();
    }
    if (event.type == RunEventType::source && event.source_event->type == SourceEventType::disconnected) ++disconnected;
    if (event.type == RunEventType::acknowledged && db.effects() == 3) stop.request_stop();
    if (std::chrono::steady_clock::now() > give_up) stop.request_stop();
  });
  TxConsumer consumer(pool, "svc", {.stop = stop.get_token(), .listeners = {listener}});
  const RunSummary summary = run(*source, consumer, body_is_key(), add_effect, options);
  CHECK(refused >= 2);
  CHECK(disconnected >= 1);
  CHECK(summary.dead_letters == 1);
  CHECK(db.effects() == 3);
}

TEST_CASE("RabbitMQ: with TLS, the source connects only to a trusted broker") {
  RabbitMqBroker broker;
  (void)broker.create("encrypted");
  broker.publish("encrypted", "m", nullptr);
  broker.flush();
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const char* folder = std::getenv("TXINBOX_BROKER_FOLDER");
  REQUIRE(folder != nullptr);
  RabbitMqOptions options = RabbitMqBroker::options("encrypted");
  options.server.host = "localhost";
  options.server.port = static_cast<std::uint16_t>(options.server.port + 2);
  options.server.tls = true;
  const auto consume = [&](const std::string& ca_file) {
    options.server.ca_file = ca_file;
    const auto source = open_rabbitmq(options);
    return thrown_by([&] { (void)run(*source, consumer, body_is_key(), add_effect, until_idle()); });
  };
  const std::string tls = std::string(folder) + "/tls/";
  CHECK(consume(tls + "other.pem") == "access_refused");
  CHECK(consume(tls + "missing.pem") == "invalid_argument");
  CHECK(db.effects() == 0);
  CHECK(consume(tls + "ca.pem") == "nothing");
  CHECK(db.effects() == 1);
}

TEST_CASE("RabbitMQ: if a queue is missing at the start, or the user is refused, run ends with an error that says so") {
  RabbitMqBroker broker;
  (void)broker.create("there");
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "svc");
  const auto error_of = [&](auto change) {
    RabbitMqOptions options = RabbitMqBroker::options("there");
    change(options);
    const auto source = open_rabbitmq(options);
    return thrown_by([&] { (void)run(*source, consumer, body_is_key(), add_effect, until_idle()); });
  };
  CHECK(error_of([](auto&) {}) == "nothing");
  CHECK(error_of([](auto& o) { o.queue = "missing"; }) == "broker_refused");
  CHECK(error_of([](auto& o) { o.dead_letters = "missing"; }) == "broker_refused");
  CHECK(error_of([](auto& o) { o.server.password = "wrong"; }) == "access_refused");
  CHECK(error_of([](auto& o) { o.server.vhost = "missing"; }) == "access_refused");
}

}  // namespace
}  // namespace txinbox::test
