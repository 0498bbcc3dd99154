// A trace goes on through a service: from the delivery, through the handler and the outbox, to the publisher.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/outcomes.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Headers = std::map<std::string, std::string>;

const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A service whose relay has published what its handlers have added.
struct Service {
  EffectDatabase db;
  Pool pool = db.pool(3);
  std::vector<IncomingHeader> headers = {{"traceparent", parent}, {"tracestate", "a=1"}, {"baggage", "b=2"}};
  Incoming incoming = {.headers = headers};

  Message message(std::string key) { return {.business_key = std::move(key), .incoming = &incoming}; }

  Headers published(std::size_t messages = 1) {
    RecordingPublisher broker;
    const OutboxRelay relay(pool, broker.publisher(), quick());
    return broker.confirmed(messages).back().headers;
  }
};

const OutgoingMessage booked{.topic = "stock", .key = "k", .payload = "{}"};
const Headers whole_context = {{"traceparent", parent}, {"tracestate", "a=1"}, {"baggage", "b=2"}};

void add_booked(soci::session& sql, Delivery&) { Outbox::add(sql, booked); }

TEST_CASE("a message of a handler has the trace context of the handler's delivery") {
  Service t;
  CHECK(TxConsumer(t.pool, "svc").consume(t.message("a"), add_booked).outcome == Outcome::consumed);
  CHECK(t.published() == whole_context);
}

TEST_CASE("a message of a handler under a lease has the trace context of the handler's delivery") {
  Service t;
  const auto handler = [&](Lease&) { Outbox::add(t.pool.acquire().session(), booked); };
  CHECK(LeaseConsumer(t.pool, "svc").consume(t.message("a"), handler).outcome == Outcome::consumed);
  CHECK(t.published() == whole_context);
}

TEST_CASE("a trace goes on through run, also in a batch and after a retry") {
  Service t;
  MemoryBroker broker;
  for (const char* key : {"a", "b", "c"}) {
    broker.publish(0, {.body = key, .headers = {{"traceparent", parent}, {"baggage", key}}});
  }
  MemorySource source(broker);
  TxConsumer consumer(t.pool, "svc");
  std::atomic<int> runs = 0;
  const Handler handler = [&](soci::session& sql, Delivery& delivery) {
    Outbox::add(sql, OutgoingMessage{.topic = "stock", .key = delivery.message().business_key});
    if (++runs == 2) throw std::runtime_error("the second run fails");
  };
  CHECK(run(source, consumer, body_is_key, handler, until_idle()).consumed == 3);
  RecordingPublisher publisher;
  const OutboxRelay relay(t.pool, publisher.publisher(), quick());
  for (const OutgoingMessage& each : publisher.confirmed(3)) {
    CHECK(each.headers == Headers{{"traceparent", parent}, {"baggage", each.key}});
  }
}

TEST_CASE("a handler with several messages forwards no trace context, and one with a single message does") {
  Service t;
  TxConsumer consumer(t.pool, "svc");
  const BatchHandler handler = [](soci::session& sql, std::span<Delivery>) { Outbox::add(sql, booked); };
  const std::vector<Message> two = {t.message("a"), t.message("b")};
  CHECK(outcomes(consumer.consume_batch(two, handler)) == Outcomes{Outcome::consumed, Outcome::consumed});
  CHECK(t.published() == Headers{});
  CHECK(outcomes(consumer.consume_batch(std::vector<Message>{t.message("c")}, handler)) == Outcomes{Outcome::consumed});
  CHECK(t.published() == whole_context);
}

TEST_CASE("nothing is forwarded if the option is off, without a delivery, and outside of a handler") {
  Service t;
  CHECK(TxConsumer(t.pool, "svc", {.forward_trace_context = false}).consume(t.message("a"), add_booked).outcome ==
        Outcome::consumed);
  CHECK(t.published() == Headers{});
  TxConsumer consumer(t.pool, "svc");
  CHECK(consumer.consume({.business_key = "b"}, add_booked).outcome == Outcome::consumed);
  CHECK(t.published() == Headers{});
  CHECK_THROWS(
      (void)consumer.consume(t.message("c"), [](soci::session&, Delivery&) { throw std::runtime_error("no"); }));
  Outbox::add(t.pool.acquire().session(), booked);
  CHECK(t.published() == Headers{});
}

TEST_CASE("the context of an inner handler does not stay for the rest of the outer one") {
  Service t;
  const std::string other = "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const std::vector<IncomingHeader> other_headers = {{"traceparent", other}};
  const Incoming inner = {.headers = other_headers};
  Pool other_pool = t.db.pool(1);
  const auto handler = [&](Lease&) {
    const Message message{.business_key = "inner", .incoming = &inner};
    CHECK(TxConsumer(other_pool, "inner").consume(message, [](soci::session&, Delivery&) {}).outcome ==
          Outcome::consumed);
    Outbox::add(t.pool.acquire().session(), booked);
  };
  CHECK(LeaseConsumer(t.pool, "svc").consume(t.message("a"), handler).outcome == Outcome::consumed);
  CHECK(t.published() == whole_context);
}

TEST_CASE("a trace context that does not fit beside the message's own headers is left out") {
  Service t;
  OutgoingMessage large = booked;
  large.headers["note"] = std::string(65'500, 'x');  // the limit is 65,535 bytes as JSON
  CHECK(TxConsumer(t.pool, "svc")
            .consume(t.message("a"), [&](soci::session& sql, Delivery&) { Outbox::add(sql, large); })
            .outcome == Outcome::consumed);
  CHECK(t.published() == large.headers);
}

/// Sets headers of the messages that go out, and records the calls of publishers.
struct Tracer : Listener {
  void on_outgoing(const OutgoingMessage& message, Headers& headers) override {
    seen = message;
    headers["traceparent"] = "from the tracer";
    if (is_wrong) headers["bad"] = "\xff";
    if (throws) throw std::runtime_error("no");
  }
  void on_publish(const Publication& publication) override {
    const std::lock_guard lock(mutex);
    publications += "messages: " + std::to_string(publication.messages.size()) +
                    ", results: " + std::to_string(publication.results.size()) + (publication.error ? ", threw" : "") +
                    (publication.duration.count() >= 0 ? "\n" : "!\n");
    started = publication.started;
  }
  std::string published() {
    const std::lock_guard lock(mutex);
    return publications;
  }

  OutgoingMessage seen;
  bool throws = false, is_wrong = false;
  std::mutex mutex;
  std::string publications;
  std::chrono::system_clock::time_point started;
};

TEST_CASE("a listener sees a message that goes out, and sets its headers") {
  Service t;
  const auto tracer = std::make_shared<Tracer>();
  TxConsumer consumer(t.pool, "svc", {.listeners = {tracer}});
  CHECK(consumer.consume(t.message("a"), add_booked).outcome == Outcome::consumed);
  CHECK(tracer->seen.topic == "stock");
  CHECK(tracer->seen.headers.empty());
  CHECK(tracer->seen.id == t.db.text("select id from txinbox_outbox_message"));
  CHECK(t.published() == Headers{{"traceparent", "from the tracer"}, {"tracestate", "a=1"}, {"baggage", "b=2"}});
}

TEST_CASE("a listener that throws, or sets a header that cannot be sent, changes nothing") {
  Service t;
  const auto tracer = std::make_shared<Tracer>();
  TxConsumer consumer(t.pool, "svc", {.listeners = {tracer}});
  tracer->throws = true;
  CHECK(consumer.consume(t.message("a"), add_booked).outcome == Outcome::consumed);
  CHECK(t.published() == whole_context);
  tracer->throws = false;
  tracer->is_wrong = true;
  CHECK(consumer.consume(t.message("b"), add_booked).outcome == Outcome::consumed);
  CHECK(t.published() == whole_context);
}

TEST_CASE("a listener sees each call of a relay's publisher") {
  Service t;
  const auto tracer = std::make_shared<Tracer>();
  const auto before = std::chrono::system_clock::now();
  RelayOptions options = quick();
  options.listeners = {tracer};
  std::atomic<bool> fails = true;
  Outbox::add(t.pool.acquire().session(), booked);
  const OutboxRelay relay(
      t.pool,
      [&](std::span<const OutgoingMessage> messages) {
        if (fails.exchange(false)) throw std::runtime_error("no broker");
        return std::vector<PublishResult>(messages.size());
      },
      options);
  CHECK(eventually([&] { return tracer->published() == "messages: 1, results: 0, threw\nmessages: 1, results: 1\n"; }));
  const std::lock_guard lock(tracer->mutex);
  CHECK(tracer->started >= before);
}

}  // namespace
}  // namespace txinbox::test
