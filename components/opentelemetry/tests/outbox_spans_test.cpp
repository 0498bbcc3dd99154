#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <txinbox/incoming.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/txinbox.hpp>

#include "support/recording_publisher.hpp"
#include "support/test_database.hpp"
#include "traces.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// An order service on RabbitMQ, whose handler adds one message to the outbox.
struct OrderService {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  const std::shared_ptr<Listener> spans =
      std::make_shared<OpenTelemetrySpans>(OpenTelemetryOptions{.system = "rabbitmq", .destination = "orders"});
  TxConsumer consumer{pool, "order-service", {.listeners = {spans}}};

  const std::vector<IncomingHeader> headers{{.name = "traceparent", .value = sent_context},
                                            {.name = "tracestate", .value = "vendor=1"}};
  Incoming incoming{.id = "m1", .headers = headers};

  void consume_and_add(OutgoingMessage message) {
    (void)consumer.consume({.business_key = "order1", .incoming = &incoming},
                           [&](soci::session& sql, Delivery&) { Outbox::add(sql, message); });
  }

  std::string header(const std::string& name) const {
    const std::string stored = db.text("select headers from txinbox_outbox_message");
    return stored.empty() ? "none" : JsonDocument(stored).text("/" + name).value_or("none");
  }
};

std::string context_of(const FinishedSpan& span) { return "00-" + span.trace + "-" + span.id + "-01"; }

TEST_CASE("a message of the outbox carries the span that created it") {
  OrderService service;
  service.consume_and_add({.topic = "stock", .headers = {{"tenant", "blue"}}});
  const auto spans = service.traces.take();
  const FinishedSpan& create = only(spans, "create stock");
  CHECK(create.trace == sent_trace);
  CHECK(create.parent == only(spans, "handle").id);
  CHECK(create.kind == "PRODUCER");
  CHECK(create.attributes.at("messaging.operation.type") == "create");
  CHECK(create.attributes.at("messaging.message.id") == service.db.text("select id from txinbox_outbox_message"));
  CHECK(create.attributes.at("messaging.destination.name") == "stock");
  CHECK(create.attributes.at("messaging.system") == "rabbitmq");
  CHECK(service.header("traceparent") == context_of(create));
  CHECK(service.header("tracestate") == "vendor=1");
  CHECK(service.header("tenant") == "blue");
}

TEST_CASE("a message of a redelivery carries nothing of the producer's trace") {
  OrderService service;
  service.incoming.deliveries = 2;
  service.consume_and_add({.topic = "stock"});
  const FinishedSpan create = only(service.traces.take(), "create stock");
  CHECK(create.trace != sent_trace);
  CHECK(service.header("traceparent") == context_of(create));
  CHECK(service.header("tracestate") == "none");
}

TEST_CASE("a message with a trace context of its own keeps it") {
  OrderService service;
  const std::string own = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  SUBCASE("traceparent") {
    service.consume_and_add({.topic = "stock", .headers = {{"traceparent", own}}});
    CHECK(service.header("traceparent") == own);
    CHECK(service.header("tracestate") == "none");
  }
  SUBCASE("in another case") {
    service.consume_and_add({.topic = "stock", .headers = {{"Traceparent", own}}});
    CHECK(service.header("Traceparent") == own);
    CHECK(service.header("traceparent") == "none");
  }
  for (const FinishedSpan& span : service.traces.take()) CHECK(span.name != "create stock");
}

TEST_CASE("the relay's span continues the trace of the message, and says if the broker has not confirmed it") {
  OrderService service;
  service.consume_and_add({.topic = "stock"});
  const std::string created = only(service.traces.take(), "create stock").id;
  RecordingPublisher broker;
  int tries = 0;
  {
    OutboxRelay relay(service.pool, broker.publisher([&](const OutgoingMessage&) -> PublishResult {
      ++tries;
      if (tries == 1) throw std::runtime_error("secret");
      if (tries == 2) return {.status = PublishStatus::failed, .error = "secret"};
      return {};
    }),
                      {.poll = 10ms, .initial_backoff = 1ms, .max_backoff = 1ms, .listeners = {service.spans}});
    CHECK(broker.confirmed(1).size() == 1);
  }

  const auto spans = service.traces.take();
  REQUIRE(spans.size() == 3);
  for (const FinishedSpan& span : spans) {
    CHECK(span.name == "send stock");
    CHECK(span.kind == "CLIENT");
    CHECK(span.trace == sent_trace);
    CHECK(span.parent == created);
    CHECK(span.links == std::vector{sent_trace + "-" + created});
    CHECK(span.attributes.at("messaging.operation.name") == "send");
    CHECK(span.attributes.contains("messaging.message.id"));
    CHECK(span.description.empty());
  }
  CHECK(spans[0].attributes.at("error.type") != "secret");
  CHECK(spans[0].is_error);
  CHECK(spans[1].attributes.at("error.type") == "failed");
  CHECK(spans[1].is_error);
  CHECK_FALSE(spans[2].is_error);
  CHECK_FALSE(spans[2].attributes.contains("error.type"));
}

TEST_CASE("a message without a context gets no span of the relay, and no header") {
  OrderService service;
  {
    auto connection = service.pool.acquire();
    Outbox::add(connection, {.topic = "stock"});
  }
  CHECK(service.header("traceparent") == "none");
  RecordingPublisher broker;
  {
    OutboxRelay relay(service.pool, broker.publisher(), {.poll = 10ms, .listeners = {service.spans}});
    CHECK(broker.confirmed(1).size() == 1);
  }
  CHECK(service.traces.take().empty());
}

TEST_CASE("what comes in and what goes out can have different brokers") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  const auto spans = std::make_shared<OpenTelemetrySpans>(OpenTelemetryOptions{.outgoing_system = "kafka"});
  TxConsumer consumer(pool, "payments", {.listeners = {spans}});
  (void)consumer.consume({.business_key = "payment1"},
                         [](soci::session& sql, Delivery&) { Outbox::add(sql, {.topic = "paid"}); });
  const auto finished = traces.take();
  CHECK(only(finished, "process payments").kind == "INTERNAL");
  CHECK(only(finished, "create paid").kind == "PRODUCER");
  CHECK(only(finished, "create paid").attributes.at("messaging.system") == "kafka");
}

TEST_CASE("a publisher that returns too few results has confirmed nothing") {
  OrderService service;
  service.consume_and_add({.topic = "stock"});
  (void)service.traces.take();
  const std::vector<OutgoingMessage> messages{{.topic = "stock", .headers = {{"traceparent", sent_context}}}};
  service.spans->on_publish(
      {.messages = messages, .results = {}, .started = std::chrono::system_clock::now(), .duration = 5ms});
  const auto spans = service.traces.take();
  CHECK(only(spans, "send stock").is_error);
}

}  // namespace
}  // namespace txinbox::test
