#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opentelemetry/nostd/shared_ptr.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/tracer.h>
#include <txinbox/listener.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/outbox.hpp>
#include <txinbox/version.hpp>

#include "attributes.hpp"
#include "trace_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

using SpanPtr = ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Span>;

/// Returns the active span of this thread. It is not valid if there is none.
SpanContext active_span();

/// Begins spans with the names, the attributes, the parents and the links of the conventions.
class SpanFactory {
 public:
  /// Takes the tracer of the global provider.
  explicit SpanFactory(OpenTelemetryOptions options);

  /// Begins the span of a call of the consumer. Null if the program has no SDK.
  SpanPtr begin_call(const Scope&) const;

  /// Begins the span of a handler that has one of several messages of its call. Null if the program has no SDK.
  SpanPtr begin_message(const Scope&) const;

  /// Begins the span of an attempt, or of a handler that has all messages of the call.
  SpanPtr begin_part(const Scope&) const;

  /// Begins the span of a message that a handler adds to the outbox.
  SpanPtr begin_create(const OutgoingMessage&) const;

  /// Begins the span of a message in a call of the relay's publisher. `created` is the span that the message carries.
  SpanPtr begin_send(const OutgoingMessage&, const SpanContext& created, std::chrono::system_clock::time_point started,
                     std::chrono::steady_clock::time_point began) const;

  /// Returns the baggage that is active in the scope. Null if there is none.
  Baggage baggage_of(const Scope&) const;

  /// Returns the attributes of the event of a span that says what happened to a message. They have views of the event.
  Attributes attributes_of(const Event&) const;

 private:
  using Links = std::vector<std::pair<SpanContext, Attributes>>;

  /// The parent of the span of a message, if it is the first delivery.
  enum class Parent {
    active,    ///< The active span of this thread.
    producer,  ///< The producer's span. The active span, if there is one, gets a link.
  };

  SpanPtr begin_process(const Scope&, Parent) const;
  SpanPtr begin_call_with_several(const Scope&) const;
  SpanPtr begin(std::string_view operation, const Scope&, const Attributes&, const Links&,
                const ::opentelemetry::trace::StartSpanOptions&) const;
  bool continues_trace(const Message&) const;
  std::string id_of(const Message&) const;
  std::string shown_key_of(const Message&) const;
  Attributes message_attributes(const Scope&, const std::string& id, const std::string& key) const;
  Attributes outgoing_attributes(const OutgoingMessage&, std::string_view operation) const;
  std::string_view outgoing_system() const;

  const OpenTelemetryOptions options_;
  const ::opentelemetry::nostd::shared_ptr<::opentelemetry::trace::Tracer> tracer_;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
