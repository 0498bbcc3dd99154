#include "tracing.hpp"

#include <chrono>
#include <memory>
#include <utility>

#include <opentelemetry/exporters/otlp/otlp_http_exporter_factory.h>
#include <opentelemetry/sdk/resource/resource.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/samplers/always_on_factory.h>
#include <opentelemetry/sdk/trace/samplers/parent_factory.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/noop.h>
#include <opentelemetry/trace/provider.h>
#include <txinbox/opentelemetry.hpp>

namespace chain {
namespace {

namespace otel = opentelemetry;
using Provider = otel::nostd::shared_ptr<otel::trace::TracerProvider>;

// components/opentelemetry/README.md: the set-up of OpenTelemetry
// The environment variable OTEL_EXPORTER_OTLP_ENDPOINT says where the collector is.
void start_opentelemetry(const char* service) {
  auto exporter = otel::exporter::otlp::OtlpHttpExporterFactory::Create();
  // Spans that do not fit into the queue are dropped.
  otel::sdk::trace::BatchSpanProcessorOptions batches;
  batches.max_queue_size = 65'536;
  batches.schedule_delay_millis = std::chrono::seconds(1);
  auto processor = otel::sdk::trace::BatchSpanProcessorFactory::Create(std::move(exporter), batches);
  // Whoever begins a trace decides whether it is sampled.
  auto sampler =
      otel::sdk::trace::ParentBasedSamplerFactory::Create(otel::sdk::trace::AlwaysOnSamplerFactory::Create());
  auto provider = otel::sdk::trace::TracerProviderFactory::Create(
      std::move(processor), otel::sdk::resource::Resource::Create({{"service.name", service}}), std::move(sampler));
  otel::trace::Provider::SetTracerProvider(Provider(provider.release()));
}

}  // namespace

Tracing::Tracing(const char* service, const char* topic) {
  start_opentelemetry(service);
  listeners_ = {std::make_shared<txinbox::OpenTelemetrySpans>(
      txinbox::OpenTelemetryOptions{.system = "kafka", .destination = topic})};
}

Tracing::~Tracing() {
  // The last owner of the SDK's provider sends the spans that it still has.
  listeners_.clear();
  otel::trace::Provider::SetTracerProvider(Provider(std::make_shared<otel::trace::NoopTracerProvider>()));
}

}  // namespace chain
