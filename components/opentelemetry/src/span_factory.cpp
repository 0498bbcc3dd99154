#include "span_factory.hpp"

#include <algorithm>
#include <cstdint>

#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/semconv/error_attributes.h>
#include <opentelemetry/semconv/incubating/messaging_attributes.h>
#include <opentelemetry/semconv/schema_url.h>
#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/provider.h>
#include <txinbox/incoming.hpp>
#include <txinbox/message_of.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {
namespace {

namespace otel = ::opentelemetry;
namespace convention = otel::semconv::messaging;
using otel::trace::SpanKind;

/// Whether neither `run` nor the broker has delivered the message before.
bool is_first(const Incoming& incoming) { return incoming.deliveries <= 1 && incoming.runs <= 1; }

/// Returns the producer's span of a message. It is not valid if there is none.
SpanContext sent_by(const Message& message) {
  return message.incoming == nullptr ? SpanContext::GetInvalid() : context_of(*message.incoming);
}

/// Without a system there is no broker: then the span is internal.
otel::trace::StartSpanOptions start(SpanKind kind, std::string_view system) {
  otel::trace::StartSpanOptions options;
  options.kind = system.empty() ? SpanKind::kInternal : kind;
  return options;
}

Attributes operation_attributes(std::string_view system, std::string_view operation, std::string_view type,
                                std::string_view destination) {
  if (system.empty()) return {};
  Attributes attributes{attribute(convention::kMessagingSystem, system),
                        attribute(convention::kMessagingOperationName, operation),
                        attribute(convention::kMessagingOperationType, type)};
  if (!destination.empty()) attributes.push_back(attribute(convention::kMessagingDestinationName, destination));
  return attributes;
}

}  // namespace

SpanContext active_span() { return otel::trace::GetSpan(otel::context::RuntimeContext::GetCurrent())->GetContext(); }

SpanFactory::SpanFactory(OpenTelemetryOptions options)
    : options_(std::move(options)),
      tracer_(otel::trace::Provider::GetTracerProvider()->GetTracer(scope_name, version(), otel::semconv::kSchemaUrl)) {
}

SpanPtr SpanFactory::begin_call(const Scope& scope) const {
  if (scope.messages.size() != 1) return begin_call_with_several(scope);
  return begin_process(scope, active_span().IsValid() ? Parent::active : Parent::producer);
}

SpanPtr SpanFactory::begin_message(const Scope& scope) const { return begin_process(scope, Parent::producer); }

SpanPtr SpanFactory::begin_process(const Scope& scope, Parent parent) const {
  const Message& message = scope.messages.front();
  otel::trace::StartSpanOptions options = start(SpanKind::kConsumer, options_.system);
  Links links;
  if (const SpanContext sent = sent_by(message); sent.IsValid()) {
    links.emplace_back(sent, Attributes());
    if (parent == Parent::producer && continues_trace(message)) {
      options.parent = sent;
      if (const SpanContext active = active_span(); active.IsValid()) links.emplace_back(active, Attributes());
    }
  }
  const std::string id = id_of(message);
  const std::string key = shown_key_of(message);
  return begin("process", scope, message_attributes(scope, id, key), links, options);
}

SpanPtr SpanFactory::begin_call_with_several(const Scope& scope) const {
  std::vector<std::string> ids;
  ids.reserve(scope.messages.size());  // the attributes have views of them
  Links links;
  for (const Message& message : scope.messages) {
    const SpanContext sent = sent_by(message);
    if (!sent.IsValid()) continue;
    const std::string& id = ids.emplace_back(id_of(message));
    links.emplace_back(sent, id.empty() ? Attributes() : Attributes{attribute(convention::kMessagingMessageId, id)});
  }
  Attributes attributes = operation_attributes(options_.system, "consume_batch", "process", options_.destination);
  attributes.push_back(attribute("txinbox.consumer", scope.consumer));
  if (!options_.system.empty()) {
    attributes.emplace_back(convention::kMessagingBatchMessageCount, static_cast<std::int64_t>(scope.messages.size()));
  }
  return begin("consume_batch", scope, attributes, links, start(SpanKind::kConsumer, options_.system));
}

SpanPtr SpanFactory::begin_part(const Scope& scope) const {
  const bool is_attempt = scope.kind == ScopeKind::attempt;
  Attributes attributes{attribute("txinbox.consumer", scope.consumer)};
  if (is_attempt) attributes.emplace_back("txinbox.attempt", static_cast<std::int64_t>(scope.attempt));
  return tracer_->StartSpan(is_attempt ? "attempt" : "handle", attributes);
}

SpanPtr SpanFactory::begin_create(const OutgoingMessage& message) const {
  return tracer_->StartSpan("create " + message.topic, outgoing_attributes(message, "create"),
                            start(SpanKind::kProducer, outgoing_system()));
}

SpanPtr SpanFactory::begin_send(const OutgoingMessage& message, const SpanContext& created,
                                std::chrono::system_clock::time_point started,
                                std::chrono::steady_clock::time_point began) const {
  otel::trace::StartSpanOptions options = start(SpanKind::kClient, outgoing_system());
  options.parent = created;
  options.start_system_time = otel::common::SystemTimestamp(started);
  options.start_steady_time = otel::common::SteadyTimestamp(began);
  return tracer_->StartSpan("send " + message.topic, outgoing_attributes(message, "send"), Links{{created, {}}},
                            options);
}

Baggage SpanFactory::baggage_of(const Scope& scope) const {
  const bool is_only = scope.messages.size() == 1 && scope.messages.front().incoming != nullptr;
  return is_only && options_.continue_traces ? detail::baggage_of(*scope.messages.front().incoming) : Baggage();
}

Attributes SpanFactory::attributes_of(const Event& event) const {
  const bool shows_key = event.message_id == event.business_key && !options_.business_keys;
  Attributes attributes;
  if (!event.message_id.empty() && !options_.system.empty() && !shows_key) {
    attributes.push_back(attribute(convention::kMessagingMessageId, event.message_id));
  }
  if (!event.error_class.empty()) attributes.push_back(attribute(otel::semconv::error::kErrorType, event.error_class));
  return attributes;
}

SpanPtr SpanFactory::begin(std::string_view operation, const Scope& scope, const Attributes& attributes,
                           const Links& links, const otel::trace::StartSpanOptions& options) const {
  const std::string_view destination = options_.destination.empty() ? scope.consumer : options_.destination;
  const std::string name = std::string(operation) + " " + std::string(destination);
  SpanPtr span = tracer_->StartSpan(name, attributes, links, options);
  return span->GetContext().IsValid() ? span : SpanPtr();
}

bool SpanFactory::continues_trace(const Message& message) const {
  return options_.continue_traces && message.incoming != nullptr && is_first(*message.incoming);
}

/// Returns the id of a message that comes in, as an attribute can have it. Empty if there is none, or if it would
/// show the business key.
std::string SpanFactory::id_of(const Message& message) const {
  if (options_.system.empty()) return {};
  const bool has_own = !message.message_id.empty() || message.incoming == nullptr;
  const std::string_view id = has_own ? std::string_view(message.message_id) : message.incoming->id;
  if (id == message.business_key && !options_.business_keys) return {};
  return traceable_id(std::string(id));
}

std::string SpanFactory::shown_key_of(const Message& message) const {
  return options_.business_keys ? traceable_id(message.business_key) : std::string();
}

Attributes SpanFactory::message_attributes(const Scope& scope, const std::string& id, const std::string& key) const {
  Attributes attributes = operation_attributes(options_.system, "process", "process", options_.destination);
  attributes.push_back(attribute("txinbox.consumer", scope.consumer));
  if (!id.empty()) attributes.push_back(attribute(convention::kMessagingMessageId, id));
  if (!key.empty()) attributes.push_back(attribute("txinbox.business_key", key));
  return attributes;
}

Attributes SpanFactory::outgoing_attributes(const OutgoingMessage& message, std::string_view operation) const {
  Attributes attributes = operation_attributes(outgoing_system(), operation, operation, message.topic);
  if (!attributes.empty()) attributes.push_back(attribute(convention::kMessagingMessageId, message.id));
  return attributes;
}

std::string_view SpanFactory::outgoing_system() const {
  return options_.outgoing_system.empty() ? options_.system : options_.outgoing_system;
}

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
