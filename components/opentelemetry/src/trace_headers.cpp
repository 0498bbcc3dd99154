#include "trace_headers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/baggage/propagation/baggage_propagator.h>
#include <opentelemetry/context/propagation/text_map_propagator.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/default_span.h>
#include <opentelemetry/trace/propagation/http_trace_context.h>

#include "shared/ascii.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

namespace otel = ::opentelemetry;
using Text = otel::nostd::string_view;
using Carrier = otel::context::propagation::TextMapCarrier;

/// The headers of a delivery. As for `Outbox::add`, several of `traceparent` are none, and the parts of a list may be
/// in several headers.
class IncomingCarrier final : public Carrier {
 public:
  explicit IncomingCarrier(const Incoming& incoming) : incoming_(incoming) {
    for (const IncomingHeader& each : incoming.headers) {
      if (each.name == "traceparent") ++parents_;
      if (each.name == "tracestate") append(tracestate_, each.value);
      if (each.name == "baggage") append(baggage_, each.value);
    }
  }

  Text Get(Text name) const noexcept override {
    if (name == "tracestate") return tracestate_;
    if (name == "baggage") return baggage_;
    const auto parent = parents_ == 1 && name == "traceparent" ? incoming_.header("traceparent") : std::nullopt;
    return parent ? Text(parent->data(), parent->size()) : Text();
  }

  void Set(Text, Text) noexcept override {}

 private:
  static void append(std::string& list, std::string_view part) {
    if (!part.empty()) list.append(list.empty() ? "" : ",").append(part);
  }

  const Incoming& incoming_;
  int parents_ = 0;
  std::string tracestate_;
  std::string baggage_;
};

/// The headers of a message of the outbox, whose names may be in any case.
class HeadersCarrier final : public Carrier {
 public:
  explicit HeadersCarrier(const Headers& headers) : headers_(headers) {}

  Text Get(Text name) const noexcept override {
    const auto found = std::ranges::find_if(headers_, [&](const auto& each) {
      return component::lower_case(each.first) == std::string_view(name.data(), name.size());
    });
    return found == headers_.end() ? Text() : Text(found->second);
  }

  void Set(Text, Text) noexcept override {}

 private:
  const Headers& headers_;
};

class HeadersWriter final : public Carrier {
 public:
  explicit HeadersWriter(Headers& headers) : headers_(headers) {}

  Text Get(Text) const noexcept override { return {}; }

  void Set(Text name, Text value) noexcept override {
    headers_.insert_or_assign(std::string(name), std::string(value));
  }

 private:
  Headers& headers_;
};

SpanContext extract(const Carrier& carrier) {
  otel::context::Context none;
  return otel::trace::GetSpan(otel::trace::propagation::HttpTraceContext().Extract(carrier, none))->GetContext();
}

bool is_trace_context(std::string_view name) {
  const std::string lower = component::lower_case(name);
  return lower == "traceparent" || lower == "tracestate";
}

}  // namespace

SpanContext context_of(const Incoming& incoming) { return extract(IncomingCarrier(incoming)); }

SpanContext context_of(const Headers& headers) { return extract(HeadersCarrier(headers)); }

Baggage baggage_of(const Incoming& incoming) {
  if (!incoming.header("baggage")) return {};
  otel::context::Context none;
  const auto context = otel::baggage::propagation::BaggagePropagator().Extract(IncomingCarrier(incoming), none);
  return context.HasKey(otel::baggage::kBaggageHeader) ? otel::baggage::GetBaggage(context) : Baggage();
}

bool has_trace_context(const Headers& headers) {
  return std::ranges::any_of(headers, [](const auto& each) { return is_trace_context(each.first); });
}

void set_trace_context(const SpanContext& span, Headers& headers) {
  std::erase_if(headers, [](const auto& each) { return is_trace_context(each.first); });
  otel::context::Context none;
  const otel::nostd::shared_ptr<otel::trace::Span> carried(new otel::trace::DefaultSpan(span));
  HeadersWriter writer(headers);
  otel::trace::propagation::HttpTraceContext().Inject(writer, otel::trace::SetSpan(none, carried));
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
