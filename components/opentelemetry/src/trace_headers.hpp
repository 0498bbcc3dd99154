#pragma once

#include <map>
#include <string>

#include <opentelemetry/baggage/baggage.h>
#include <opentelemetry/trace/span_context.h>
#include <txinbox/incoming.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// W3C Trace Context and W3C Baggage in the headers of messages. The propagator of the program is not asked, because
/// `Outbox::add` forwards these headers, too.

using SpanContext = ::opentelemetry::trace::SpanContext;
using Baggage = ::opentelemetry::nostd::shared_ptr<::opentelemetry::baggage::Baggage>;
using Headers = std::map<std::string, std::string>;

/// Returns the span that the headers name. It is not valid if they name none.
SpanContext context_of(const Incoming&);
SpanContext context_of(const Headers&);

/// Returns the baggage of a delivery. Null if it has none.
Baggage baggage_of(const Incoming&);

/// Whether the message has `traceparent` or `tracestate`. HTTP does not distinguish upper and lower case in names.
bool has_trace_context(const Headers&);

/// Replaces `traceparent` and `tracestate`.
void set_trace_context(const SpanContext&, Headers&);

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
