#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/runtime_context.h>
#include <txinbox/incoming.hpp>
#include <txinbox/txinbox.hpp>

#include "sent.hpp"
#include "support/test_database.hpp"
#include "traces.hpp"

namespace txinbox::test {
namespace {

namespace otel = ::opentelemetry;

TEST_CASE("a batch has a link to each message, and says which ones were not consumed") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka(true)}});
  (void)consumer.consume({.business_key = "order2"}, nothing);
  (void)traces.take();

  const Sent sent;
  const std::string other_context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const std::array<IncomingHeader, 1> other_headers{{{.name = "traceparent", .value = other_context}}};
  const Incoming other{.id = "orders/3@43", .headers = other_headers};
  const Incoming no_context{.id = "orders/3@44"};
  const std::vector<Message> batch{{.business_key = "order1", .message_id = "m1", .incoming = &sent.incoming},
                                   {.business_key = "order2", .message_id = "m2", .incoming = &other},
                                   {.business_key = "order3", .message_id = "m3", .incoming = &no_context}};
  std::vector<bool> has_baggage;
  (void)consumer.consume_batch(batch, [&](soci::session&, Delivery&) {
    has_baggage.push_back(otel::context::RuntimeContext::GetCurrent().HasKey(otel::baggage::kBaggageHeader));
  });
  CHECK(has_baggage == std::vector{true, false});

  const auto spans = traces.take();
  const FinishedSpan& call = only(spans, "consume_batch orders");
  CHECK(call.parent.empty());
  CHECK(call.trace != sent_trace);
  CHECK(call.links == std::vector<std::string>{sent_link, "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"});
  CHECK(call.attributes.at("messaging.operation.name") == "consume_batch");
  CHECK(call.attributes.at("messaging.operation.type") == "process");
  CHECK(call.attributes.at("messaging.batch.message_count") == "3");
  CHECK_FALSE(call.attributes.contains("txinbox.business_key"));
  CHECK(call.events == std::vector<std::string>{"txinbox.already_consumed m2"});

  const FinishedSpan& attempt = only(spans, "attempt");
  std::vector<FinishedSpan> processes;
  std::ranges::copy_if(spans, std::back_inserter(processes),
                       [](const FinishedSpan& each) { return each.name == "process orders"; });
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].attributes.at("messaging.message.id") == "m1");
  CHECK(processes[0].attributes.at("txinbox.business_key") == "order1");
  CHECK(processes[0].parent == sent_span);
  CHECK(processes[0].links == std::vector{sent_link, attempt.link_to()});
  CHECK(processes[1].attributes.at("messaging.message.id") == "m3");
  CHECK(processes[1].parent == attempt.id);
  CHECK(processes[1].links.empty());
}

TEST_CASE("in a batch, a delivery that is repeated is a part of the batch's trace") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  Sent sent;
  sent.incoming.runs = 2;
  (void)consumer.consume_batch(
      std::vector<Message>{{.business_key = "order1", .incoming = &sent.incoming}, {.business_key = "order2"}},
      [](soci::session&, Delivery& delivery) {
        if (delivery.message().business_key == "order2") throw Error(ErrorCode::rejected, "no such item");
      });
  const auto spans = traces.take();
  const FinishedSpan& call = only(spans, "consume_batch orders");
  CHECK(call.is_error);
  CHECK(call.links == std::vector{sent_link});
  for (const FinishedSpan& span : spans) CHECK(span.trace == call.trace);
}

TEST_CASE("a batch with one handler has one span for it") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  const Sent sent;
  (void)consumer.consume_batch(
      std::vector<Message>{{.business_key = "order1", .incoming = &sent.incoming}, {.business_key = "order2"}},
      BatchHandler([](soci::session&, std::span<Delivery>) {}));
  const auto spans = traces.take();
  CHECK(spans.size() == 3);
  CHECK(only(spans, "handle").parent == only(spans, "attempt").id);
}

}  // namespace
}  // namespace txinbox::test
