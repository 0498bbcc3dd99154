// Which spans have an error, and what they say about it.

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/txinbox.hpp>

#include "sent.hpp"
#include "support/test_database.hpp"
#include "traces.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("an error has its class, and never its text") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  CHECK_THROWS((void)consumer.consume({.business_key = "order1"}, [](soci::session& sql, Delivery&) {
    const std::string secret = "4111-1111";
    sql << "insert into no_such_table(card) values (:card)", soci::use(secret);
  }));
  const auto spans = traces.take();
  for (const char* name : {"process orders", "attempt", "handle"}) {
    const FinishedSpan& span = only(spans, name);
    CAPTURE(name);
    CHECK(span.is_error);
    CHECK_FALSE(span.attributes.at("error.type").empty());
    CHECK(span.description.empty());
    for (const auto& [attribute, value] : span.attributes) CHECK(value.find("4111") == std::string::npos);
  }
  CHECK(only(spans, "process orders").attributes.at("txinbox.outcome") == "failed");
}

TEST_CASE("what a handler decides is no error") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  SUBCASE("a later delivery") {
    (void)consumer.consume({.business_key = "order1"},
                           [](soci::session&, Delivery&) { throw RetryLater(std::chrono::seconds(1)); });
    CHECK(only(traces.take(), "process orders").attributes.at("txinbox.outcome") == "postponed");
  }
  SUBCASE("a later delivery in a batch") {
    const std::vector<Message> batch{{.business_key = "order1"}, {.business_key = "order2"}};
    (void)consumer.consume_batch(batch, [](soci::session&, Delivery&) { throw RetryLater(std::chrono::seconds(1)); });
  }
  SUBCASE("a refusal") {
    (void)consumer.consume({.business_key = "order1"},
                           [](soci::session&, Delivery& delivery) { delivery.refuse("no such item"); });
  }
  for (const FinishedSpan& span : traces.take()) {
    CAPTURE(span.name);
    CHECK_FALSE(span.is_error);
    CHECK_FALSE(span.attributes.contains("error.type"));
  }
}

TEST_CASE("an earlier message whose claim is torn does not concern the call that finds out") {
  const Traces traces;
  const auto spans = spans_of_kafka();
  const std::vector<Message> messages{{.business_key = "order2"}};
  const Scope call{.kind = ScopeKind::consume, .consumer = "order-service", .messages = messages};
  spans->on_begin(call);
  spans->on_event({.type = EventType::torn, .consumer = "order-service", .business_key = "order1"});
  spans->on_event({.type = EventType::consumed, .consumer = "order-service", .business_key = "order2"});
  spans->on_end(call, nullptr);
  const auto finished = traces.take();
  CHECK_FALSE(only(finished, "process orders").is_error);
  CHECK(only(finished, "process orders").events.empty());
}

TEST_CASE("the class of an event is more exact than that of the exception") {
  const Traces traces;
  const auto spans = spans_of_kafka();
  const std::vector<Message> messages{{.business_key = "order1"}};
  const Scope call{.kind = ScopeKind::consume, .consumer = "order-service", .messages = messages};
  spans->on_begin(call);
  spans->on_event({.type = EventType::failed, .business_key = "order1", .error_class = "connection_lost"});
  spans->on_end(call, std::make_exception_ptr(std::runtime_error("a text")));
  CHECK(only(traces.take(), "process orders").attributes.at("error.type") == "connection_lost");
}

TEST_CASE("the same key with other content is an error without an exception") {
  const Traces traces;
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {spans_of_kafka()}});
  (void)consumer.consume({.business_key = "order1", .content = "2 tea"}, nothing);
  (void)traces.take();
  (void)consumer.consume({.business_key = "order1", .content = "3 tea"}, nothing);
  const auto spans = traces.take();
  const FinishedSpan& process = only(spans, "process orders");
  CHECK(process.attributes.at("error.type") == "conflict");
  CHECK(process.is_error);
}

}  // namespace
}  // namespace txinbox::test
