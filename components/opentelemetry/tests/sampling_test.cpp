#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/sdk/trace/sampler.h>
#include <opentelemetry/sdk/trace/samplers/always_off_factory.h>
#include <opentelemetry/sdk/trace/samplers/always_on_factory.h>
#include <opentelemetry/sdk/trace/samplers/parent_factory.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/default_span.h>
#include <opentelemetry/trace/scope.h>
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

/// Leaves the calls out, and nothing else.
class NoCalls final : public samplers::Sampler {
 public:
  samplers::SamplingResult ShouldSample(const otel::trace::SpanContext& parent, otel::trace::TraceId,
                                        otel::nostd::string_view name, otel::trace::SpanKind,
                                        const otel::common::KeyValueIterable&,
                                        const otel::trace::SpanContextKeyValueIterable&) noexcept override {
    const bool is_call = std::string_view(name.data(), name.size()).starts_with("process");
    return {is_call ? samplers::Decision::DROP : samplers::Decision::RECORD_AND_SAMPLE, nullptr, parent.trace_state()};
  }
  otel::nostd::string_view GetDescription() const noexcept override { return "NoCalls"; }
};

TEST_CASE("a call that is left out has no parts") {
  const Traces traces(std::make_unique<NoCalls>());
  CHECK(forwarded(sent_context).ends_with("-00"));
  CHECK(traces.take().empty());
}

TEST_CASE("without an SDK, the span that the program has made active stays active") {
  const TestDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer(pool, "order-service", {.listeners = {std::make_shared<OpenTelemetrySpans>()}});
  const std::array<std::uint8_t, 16> trace_id{1};
  const std::array<std::uint8_t, 8> span_id{1};
  const otel::trace::SpanContext active(otel::trace::TraceId({trace_id.data(), trace_id.size()}),
                                        otel::trace::SpanId({span_id.data(), span_id.size()}),
                                        otel::trace::TraceFlags(1), true);
  otel::nostd::shared_ptr<otel::trace::Span> span(new otel::trace::DefaultSpan(active));
  const otel::trace::Scope scope(span);
  bool stays = false;
  (void)consumer.consume({.business_key = "order1"}, [&](soci::session&, Delivery&) {
    stays = otel::trace::GetSpan(otel::context::RuntimeContext::GetCurrent())->GetContext() == active;
  });
  CHECK(stays);
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
