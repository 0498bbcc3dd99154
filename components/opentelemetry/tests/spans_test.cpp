#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/trace/scope.h>
#include <txinbox/incoming.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/run.hpp>
#include <txinbox/txinbox.hpp>

#include "sent.hpp"
#include "support/memory_broker.hpp"
#include "support/test_database.hpp"
#include "traces.hpp"

namespace txinbox::test {
namespace {

namespace otel = ::opentelemetry;

TEST_CASE("the first delivery continues the producer's trace, and the handler's spans are in it") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  const Sent sent;
  std::string tenant;
  (void)consumer.consume({.business_key = "order1", .incoming = &sent.incoming}, [&](soci::session&, Delivery&) {
    const auto span = traces.tracer()->StartSpan("price the order");
    const auto baggage = otel::baggage::GetBaggage(otel::context::RuntimeContext::GetCurrent());
    baggage->GetValue("tenant", tenant);
    span->End();
  });

  const auto spans = traces.take();
  CHECK(spans.size() == 4);
  const FinishedSpan& process = only(spans, "process orders");
  const FinishedSpan& attempt = only(spans, "attempt");
  const FinishedSpan& handle = only(spans, "handle");
  CHECK(process.trace == sent_trace);
  CHECK(process.parent == sent_span);
  CHECK(process.links == std::vector{sent_link});
  CHECK(process.kind == "CONSUMER");
  CHECK(attempt.parent == process.id);
  CHECK(handle.parent == attempt.id);
  CHECK(only(spans, "price the order").parent == handle.id);
  CHECK(tenant == "blue");
  CHECK(process.attributes == std::map<std::string, std::string>{{"messaging.system", "kafka"},
                                                                 {"messaging.operation.name", "process"},
                                                                 {"messaging.operation.type", "process"},
                                                                 {"messaging.destination.name", "orders"},
                                                                 {"messaging.message.id", "orders/3@42"},
                                                                 {"txinbox.consumer", "order-service"},
                                                                 {"txinbox.outcome", "consumed"}});
  CHECK(attempt.attributes.at("txinbox.attempt") == "1");
  CHECK_FALSE(otel::context::RuntimeContext::GetCurrent().HasKey(otel::trace::kSpanKey));
}

TEST_CASE("the business key is an attribute only if asked for, and a duplicate says how old its original is") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka(true)}});
  (void)consumer.consume({.business_key = "order1"}, nothing);
  const auto first = traces.take();
  CHECK(only(first, "process orders").attributes.at("txinbox.business_key") == "order1");
  CHECK(only(first, "process orders").parent.empty());
  (void)consumer.consume({.business_key = "order1", .message_id = "m2"}, nothing);
  const auto second = traces.take();
  const FinishedSpan& duplicate = only(second, "process orders");
  CHECK(duplicate.attributes.at("txinbox.outcome") == "already_consumed");
  CHECK(duplicate.attributes.contains("txinbox.duplicate.age"));
  CHECK(duplicate.attributes.at("messaging.message.id") == "m2");
  CHECK_FALSE(duplicate.is_error);
}

TEST_CASE("a delivery that the broker repeats begins a trace of its own, with a link") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  Sent sent;
  sent.incoming.deliveries = 2;
  (void)consumer.consume({.business_key = "order1", .incoming = &sent.incoming}, nothing);
  const auto spans = traces.take();
  const FinishedSpan& process = only(spans, "process orders");
  CHECK(process.trace != sent_trace);
  CHECK(process.parent.empty());
  CHECK(process.links == std::vector{sent_link});
}

TEST_CASE("a later run of run begins a trace of its own, with a link") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}, .max_attempts = 5});
  MemoryBroker broker;
  broker.publish(0, {.body = R"({"no":"order1"})", .headers = {{"traceparent", sent_context}}});
  MemorySource source(broker);
  int runs = 0;
  std::vector<int> counted;
  const Handler handler = [&](soci::session&, Delivery& delivery) {
    counted.push_back(delivery.incoming().runs);
    if (++runs < 3) throw std::runtime_error("the price service does not answer");
  };
  (void)run(source, consumer, key_from("/no"), handler,
            {.backoff = std::chrono::milliseconds(1), .idle_exit = std::chrono::milliseconds(200)});
  CHECK(counted == std::vector{1, 2, 3});

  const auto spans = traces.take();
  std::vector<FinishedSpan> calls;
  for (const FinishedSpan& span : spans) {
    if (span.name == "process orders") calls.push_back(span);
  }
  REQUIRE(calls.size() == 3);
  CHECK(calls[0].trace == sent_trace);
  CHECK(calls[0].is_error);
  for (const FinishedSpan& later : {calls[1], calls[2]}) {
    CHECK(later.trace != sent_trace);
    CHECK(later.parent.empty());
    CHECK(later.links == std::vector{sent_link});
  }
  CHECK(calls[1].trace != calls[2].trace);
}

TEST_CASE("a run again within a call has its own attempt, and the call says why") {
  const Traces traces;
  const auto listener = spans_of_kafka();
  const std::vector<Message> messages{{.business_key = "order1"}};
  const auto scope = [&](ScopeKind kind, int attempt) {
    return Scope{.kind = kind, .consumer = "order-service", .messages = messages, .attempt = attempt};
  };
  listener->on_begin(scope(ScopeKind::consume, 1));
  listener->on_begin(scope(ScopeKind::attempt, 1));
  listener->on_end(scope(ScopeKind::attempt, 1), std::make_exception_ptr(std::runtime_error("a text")));
  listener->on_event({.type = EventType::retry, .business_key = "order1", .error_class = "deadlock"});
  listener->on_begin(scope(ScopeKind::attempt, 2));
  listener->on_end(scope(ScopeKind::attempt, 2), nullptr);
  listener->on_event({.type = EventType::consumed, .business_key = "order1", .attempt = 2});
  listener->on_end(scope(ScopeKind::consume, 1), nullptr);

  const auto spans = traces.take();
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].is_error);
  CHECK_FALSE(spans[1].is_error);
  CHECK(spans[1].attributes.at("txinbox.attempt") == "2");
  CHECK(spans[2].events == std::vector<std::string>{"txinbox.retry deadlock"});
  CHECK(spans[2].attributes.at("txinbox.outcome") == "consumed");
  CHECK_FALSE(spans[2].is_error);
}

TEST_CASE("an id that no attribute can have, or that is the business key, is not shown as it is") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  const Incoming incoming{.id = "\xff"};
  SUBCASE("bytes that are no text") {
    TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
    (void)consumer.consume({.business_key = "order1", .incoming = &incoming}, nothing);
    CHECK(only(traces.take(), "process orders").attributes.at("messaging.message.id") == "0xff");
  }
  SUBCASE("the business key") {
    TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
    (void)consumer.consume({.business_key = "order1", .message_id = "order1"}, nothing);
    (void)consumer.consume_batch(std::vector<Message>{{.business_key = "order1", .message_id = "order1"},
                                                      {.business_key = "order2", .message_id = "order2"}},
                                 nothing);
    const auto spans = traces.take();
    CHECK(spans.size() > 5);
    for (const FinishedSpan& span : spans) {
      CHECK_FALSE(span.attributes.contains("messaging.message.id"));
      for (const std::string& event : span.events) CHECK(event == "txinbox.already_consumed");
    }
  }
  SUBCASE("a business key that is refused") {
    TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka(true)}});
    CHECK_THROWS((void)consumer.consume({.business_key = "\xff"}, nothing));
    CHECK(only(traces.take(), "process orders").attributes.at("txinbox.business_key") == "0xff");
  }
}

TEST_CASE("a program can keep the traces of strangers apart") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka(false, false)}});
  const Sent sent;
  bool has_baggage = true;
  (void)consumer.consume({.business_key = "order1", .incoming = &sent.incoming}, [&](soci::session&, Delivery&) {
    has_baggage = otel::context::RuntimeContext::GetCurrent().HasKey(otel::baggage::kBaggageHeader);
  });
  const auto spans = traces.take();
  CHECK(only(spans, "process orders").trace != sent_trace);
  CHECK(only(spans, "process orders").links == std::vector{sent_link});
  CHECK_FALSE(has_baggage);
}

TEST_CASE("two traceparent headers are none") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  const std::array<IncomingHeader, 2> headers{
      {{.name = "traceparent", .value = sent_context}, {.name = "traceparent", .value = sent_context}}};
  const Incoming incoming{.headers = headers};
  (void)consumer.consume({.business_key = "order1", .incoming = &incoming}, nothing);
  const auto spans = traces.take();
  CHECK(only(spans, "process orders").trace != sent_trace);
  CHECK(only(spans, "process orders").links.empty());
}

TEST_CASE("a consumer in a handler, and two listeners, have spans of their own") {
  const Traces traces;
  const TestDatabase db;
  const TestDatabase other;
  Pool pool = db.pool();
  Pool other_pool = other.pool();
  TxConsumer outer(pool, "outer", {.listeners = {spans_of_kafka(), std::make_shared<OpenTelemetrySpans>()}});
  TxConsumer inner(other_pool, "inner", {.listeners = {std::make_shared<OpenTelemetrySpans>()}});
  (void)outer.consume({.business_key = "order1"},
                      [&](soci::session&, Delivery&) { (void)inner.consume({.business_key = "item1"}, nothing); });
  const auto spans = traces.take();
  CHECK(spans.size() == 9);
  CHECK(only(spans, "process outer").parent == only(spans, "process orders").id);
  for (const char* name : {"process orders", "process outer", "process inner"}) {
    CHECK(only(spans, name).attributes.at("txinbox.outcome") == "consumed");
  }
  const auto innermost = std::ranges::find_if(
      spans, [&](const FinishedSpan& each) { return each.id == only(spans, "process inner").parent; });
  REQUIRE(innermost != spans.end());
  CHECK(innermost->name == "handle");
}

TEST_CASE("a lease has the same spans") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  LeaseConsumer consumer(pool, "charging", {}, {.listeners = {spans_of_kafka()}});
  const Sent sent;
  (void)consumer.consume({.business_key = "charge1", .incoming = &sent.incoming}, [](Lease&) {});
  const auto spans = traces.take();
  CHECK(spans.size() == 3);
  CHECK(only(spans, "process orders").parent == sent_span);
  CHECK(only(spans, "handle").parent == only(spans, "attempt").id);
}

TEST_CASE("an active span is the parent of the call, with a link to the message of another trace") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  const Sent sent;
  {
    auto receive = traces.tracer()->StartSpan("receive orders");
    const otel::trace::Scope active(receive);
    (void)consumer.consume({.business_key = "order1", .incoming = &sent.incoming}, nothing);
    receive->End();
  }
  const auto spans = traces.take();
  const FinishedSpan& process = only(spans, "process orders");
  CHECK(process.parent == only(spans, "receive orders").id);
  CHECK(process.links == std::vector{sent_link});
}

TEST_CASE("without a broker the spans are internal, and named by the consumer") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "payments", {.listeners = {std::make_shared<OpenTelemetrySpans>()}});
  const Sent sent;
  (void)consumer.consume({.business_key = "payment1", .message_id = "m1", .incoming = &sent.incoming}, nothing);
  const auto spans = traces.take();
  const FinishedSpan& process = only(spans, "process payments");
  CHECK(process.kind == "INTERNAL");
  CHECK(process.trace == sent_trace);
  CHECK(process.attributes ==
        std::map<std::string, std::string>{{"txinbox.consumer", "payments"}, {"txinbox.outcome", "consumed"}});
}

}  // namespace
}  // namespace txinbox::test
