#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/sdk/trace/samplers/always_off_factory.h>
#include <opentelemetry/sdk/trace/samplers/always_on_factory.h>
#include <opentelemetry/sdk/trace/samplers/parent_factory.h>
#include <opentelemetry/trace/context.h>
#include <txinbox/incoming.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/txinbox.hpp>

#include "support/test_database.hpp"
#include "traces.hpp"

namespace txinbox::test {
namespace {

namespace otel = ::opentelemetry;
namespace samplers = otel::sdk::trace;

/// Consumes a message of a producer. Returns the `traceparent` of the message that its handler adds to the outbox.
std::string forwarded(const std::string& context) {
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service",
                      {.listeners = {std::make_shared<OpenTelemetrySpans>(OpenTelemetryOptions{.system = "kafka"})}});
  const std::vector<IncomingHeader> headers{{.name = "traceparent", .value = context}};
  const Incoming incoming{.headers = headers};
  (void)consumer.consume({.business_key = "order1", .incoming = &incoming},
                         [](soci::session& sql, Delivery&) { Outbox::add(sql, {.topic = "stock"}); });
  CHECK_FALSE(otel::context::RuntimeContext::GetCurrent().HasKey(otel::trace::kSpanKey));
  return JsonDocument(db.text("select headers from txinbox_outbox_message")).text("/traceparent").value_or("none");
}

TEST_CASE("without sampling no span is made, and the trace goes on, not sampled") {
  const Traces traces(samplers::AlwaysOffSamplerFactory::Create());
  const std::string context = forwarded(sent_context);
  CAPTURE(context);
  CHECK(context.substr(3, 32) == sent_trace);
  CHECK(context.ends_with("-00"));
  CHECK(traces.take().empty());
}

TEST_CASE("the decision of the producer holds for the whole chain") {
  const Traces traces(samplers::ParentBasedSamplerFactory::Create(samplers::AlwaysOnSamplerFactory::Create()));
  const std::string not_sampled = "00-" + sent_trace + "-" + sent_span + "-00";
  CHECK(forwarded(not_sampled).ends_with("-00"));
  CHECK(traces.take().empty());
  CHECK(forwarded(sent_context).ends_with("-01"));
  CHECK(traces.take().size() == 4);
}

TEST_CASE("a program without an SDK forwards what it got") { CHECK(forwarded(sent_context) == sent_context); }

TEST_CASE("a program without an SDK has the message's baggage, too") {
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<OpenTelemetrySpans>()}});
  const std::vector<IncomingHeader> headers{{.name = "baggage", .value = "tenant=blue"},
                                            {.name = "baggage", .value = "shop=7"}};
  const Incoming incoming{.headers = headers};
  std::string tenant;
  std::string shop;
  (void)consumer.consume({.business_key = "order1", .incoming = &incoming}, [&](soci::session&, Delivery&) {
    const auto baggage = otel::baggage::GetBaggage(otel::context::RuntimeContext::GetCurrent());
    baggage->GetValue("tenant", tenant);
    baggage->GetValue("shop", shop);
  });
  CHECK(tenant == "blue");
  CHECK(shop == "7");
  CHECK_FALSE(otel::context::RuntimeContext::GetCurrent().HasKey(otel::baggage::kBaggageHeader));
}

}  // namespace
}  // namespace txinbox::test
