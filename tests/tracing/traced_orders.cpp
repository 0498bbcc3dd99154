// A producer with spans: sends orders to Kafka. The collector of tests/tracing/collector.py gets its spans, too.
//
// Usage: txinbox_traced_orders BROKERS TOPIC FIRST LAST SKU...
//   sends order FIRST to LAST, for the items in turn.

#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <opentelemetry/context/propagation/text_map_propagator.h>
#include <opentelemetry/exporters/otlp/otlp_http_exporter_factory.h>
#include <opentelemetry/sdk/resource/resource.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>
#include <opentelemetry/trace/tracer.h>
#include <txinbox/kafka.hpp>
#include <txinbox/outbox.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/result.hpp>

namespace {

namespace otel = opentelemetry;

class HeadersWriter final : public otel::context::propagation::TextMapCarrier {
 public:
  explicit HeadersWriter(std::map<std::string, std::string>& headers) : headers_(headers) {}

  otel::nostd::string_view Get(otel::nostd::string_view) const noexcept override { return {}; }

  void Set(otel::nostd::string_view name, otel::nostd::string_view value) noexcept override {
    headers_.insert_or_assign(std::string(name), std::string(value));
  }

 private:
  std::map<std::string, std::string>& headers_;
};

void add_context(const otel::nostd::shared_ptr<otel::trace::Span>& span, txinbox::OutgoingMessage& message) {
  otel::context::Context none;
  HeadersWriter writer(message.headers);
  otel::trace::propagation::HttpTraceContext().Inject(writer, otel::trace::SetSpan(none, span));
}

void send(const std::string& brokers, const std::string& topic, int first, int last, std::span<char* const> skus) {
  otel::sdk::trace::BatchSpanProcessorOptions batches;
  batches.max_queue_size = 65'536;
  const auto provider = otel::sdk::trace::TracerProviderFactory::Create(
      otel::sdk::trace::BatchSpanProcessorFactory::Create(otel::exporter::otlp::OtlpHttpExporterFactory::Create(),
                                                          batches),
      otel::sdk::resource::Resource::Create({{"service.name", "shop"}}));
  const auto tracer = provider->GetTracer("shop");
  const txinbox::Publisher publish = txinbox::kafka_publisher({.brokers = brokers});

  otel::trace::StartSpanOptions producer;
  producer.kind = otel::trace::SpanKind::kProducer;
  for (int i = first; i <= last; ++i) {
    const auto span = tracer->StartSpan("send " + topic, producer);
    const std::string sku = skus[static_cast<std::size_t>(i) % skus.size()];
    const std::string number = std::to_string(i);
    txinbox::OutgoingMessage message{.topic = topic,
                                     .key = sku,
                                     .payload = R"({"no":"order)" + number + R"(","sku":")" + sku + R"(","qty":1})",
                                     .id = "00000000-0000-4000-8000-" + std::string(12 - number.size(), '0') + number};
    add_context(span, message);
    const auto results = publish(std::span(&message, 1));
    span->End();
    if (results.at(0).status != txinbox::PublishStatus::confirmed) throw std::runtime_error(results.at(0).error);
  }
  provider->ForceFlush();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fputs("usage: txinbox_traced_orders BROKERS TOPIC FIRST LAST SKU...\n", stderr);
    return 2;
  }
  try {
    send(argv[1], argv[2], std::stoi(argv[3]), std::stoi(argv[4]),
         std::span(argv, static_cast<std::size_t>(argc)).subspan(5));
    return 0;
  } catch (...) {
    std::fprintf(stderr, "txinbox_traced_orders: %s\n", txinbox::describe_error(std::current_exception()).c_str());
    return 1;
  }
}
