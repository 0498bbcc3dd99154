#include "traces.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include <doctest/doctest.h>
#include <opentelemetry/exporters/memory/in_memory_span_exporter_factory.h>
#include <opentelemetry/sdk/trace/samplers/always_on_factory.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/span_data.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/noop.h>
#include <opentelemetry/trace/provider.h>

namespace txinbox::test {
namespace {

namespace otel = ::opentelemetry;

template <class Id>
std::string hex(const Id& id) {
  if (!id.IsValid()) return {};
  std::array<char, 2 * Id::kSize> text{};
  id.ToLowerBase16(text);
  return {text.data(), text.size()};
}

std::string kind_of(otel::trace::SpanKind kind) {
  constexpr std::array names{"INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string text_of(const otel::sdk::common::OwnedAttributeValue& value) {
  return otel::nostd::visit(
      [](const auto& each) -> std::string {
        using Value = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          return each;
        } else if constexpr (std::is_arithmetic_v<Value>) {
          return std::to_string(each);
        } else {
          return "a list";
        }
      },
      value);
}

template <class Attributed>
std::map<std::string, std::string> attributes_of(const Attributed& from) {
  std::map<std::string, std::string> attributes;
  for (const auto& [name, value] : from.GetAttributes()) attributes.emplace(name, text_of(value));
  return attributes;
}

FinishedSpan finished(const otel::sdk::trace::SpanData& data) {
  FinishedSpan span{.name = std::string(data.GetName()),
                    .trace = hex(data.GetTraceId()),
                    .id = hex(data.GetSpanId()),
                    .parent = hex(data.GetParentSpanId()),
                    .kind = kind_of(data.GetSpanKind()),
                    .attributes = attributes_of(data),
                    .links = {},
                    .events = {},
                    .is_error = data.GetStatus() == otel::trace::StatusCode::kError,
                    .description = std::string(data.GetDescription())};
  for (const auto& link : data.GetLinks()) {
    span.links.push_back(hex(link.GetSpanContext().trace_id()) + "-" + hex(link.GetSpanContext().span_id()));
  }
  for (const auto& event : data.GetEvents()) {
    std::string text = event.GetName();
    const auto attributes = attributes_of(event);
    for (const char* name : {"messaging.message.id", "error.type"}) {
      if (const auto found = attributes.find(name); found != attributes.end()) text += " " + found->second;
    }
    span.events.push_back(text);
  }
  return span;
}

}  // namespace

Traces::Traces(std::unique_ptr<otel::sdk::trace::Sampler> sampler) {
  auto processor = otel::sdk::trace::SimpleSpanProcessorFactory::Create(
      otel::exporter::memory::InMemorySpanExporterFactory::Create(data_, 10'000));
  if (!sampler) sampler = otel::sdk::trace::AlwaysOnSamplerFactory::Create();
  auto provider = otel::sdk::trace::TracerProviderFactory::Create(
      std::move(processor), otel::sdk::resource::Resource::Create({}), std::move(sampler));
  otel::trace::Provider::SetTracerProvider(otel::nostd::shared_ptr<otel::trace::TracerProvider>(provider.release()));
}

Traces::~Traces() {
  otel::trace::Provider::SetTracerProvider(
      otel::nostd::shared_ptr<otel::trace::TracerProvider>(new otel::trace::NoopTracerProvider));
}

otel::nostd::shared_ptr<otel::trace::Tracer> Traces::tracer() const {
  return otel::trace::Provider::GetTracerProvider()->GetTracer("service");
}

std::vector<FinishedSpan> Traces::take() const {
  std::vector<FinishedSpan> spans;
  for (const auto& data : data_->GetSpans()) spans.push_back(finished(*data));
  return spans;
}

const FinishedSpan& only(const std::vector<FinishedSpan>& spans, const std::string& name) {
  const auto found = std::ranges::find(spans, name, &FinishedSpan::name);
  std::string names;
  for (const FinishedSpan& span : spans) names += span.name + "; ";
  INFO(name, " of ", names);
  REQUIRE(std::ranges::count(spans, name, &FinishedSpan::name) == 1);
  return *found;
}

}  // namespace txinbox::test
