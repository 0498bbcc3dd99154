#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/semconv/error_attributes.h>
#include <opentelemetry/trace/context.h>
#include <txinbox/error.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/outbox.hpp>
#include <txinbox/outbox_relay.hpp>
#include <txinbox/result.hpp>

#include "attributes.hpp"
#include "span_factory.hpp"
#include "trace_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

namespace otel = ::opentelemetry;
using detail::otel_text;
using detail::SpanContext;
using detail::SpanPtr;
using otel::context::RuntimeContext;
using Token = otel::nostd::unique_ptr<otel::context::Token>;

/// A scope of this thread that has begun.
struct Open {
  const void* owner;  ///< The listener.
  ScopeKind kind;
  std::span<const Message> messages;
  SpanPtr span = {};       ///< Null if the scope has no span.
  Token token = {};        ///< While it exists, the span is the active one of this thread.
  bool has_error = false;  ///< An event has set the error of the span.
};

/// The open scopes of this thread. They nest.
std::vector<Open>& open_scopes() {
  thread_local std::vector<Open> scopes;
  return scopes;
}

/// Returns the context of a span that is not recorded. If the producer's span is sampled, and the sampler of the
/// program leaves this span out, the SDK 1.19 still calls it sampled.
SpanContext not_sampled(const SpanContext& span) {
  const otel::trace::TraceFlags flags(
      static_cast<std::uint8_t>(span.trace_flags().flags() & ~otel::trace::TraceFlags::kIsSampled));
  return {span.trace_id(), span.span_id(), flags, span.IsRemote(), span.trace_state()};
}

/// Makes the span of the scope and the baggage active, if they are there.
void activate(Open& scope, const detail::Baggage& baggage) {
  if (!scope.span && !baggage) return;
  auto context = RuntimeContext::GetCurrent();
  if (scope.span) context = otel::trace::SetSpan(context, scope.span);
  if (baggage) context = otel::baggage::SetBaggage(context, baggage);
  scope.token = RuntimeContext::Attach(context);
}

/// The description of the status stays empty: the text of an error can hold values of messages.
void set_error(otel::trace::Span& span, std::string_view type) {
  span.SetAttribute(otel::semconv::error::kErrorType, otel_text(type.empty() ? "_OTHER" : type));
  span.SetStatus(otel::trace::StatusCode::kError);
}

/// Whether the event is about a message of the call. A call can also find out how an earlier delivery ended.
bool concerns(const Event& event, const Open& call) {
  return event.business_key.empty() ||
         std::ranges::find(call.messages, event.business_key, &Message::business_key) != call.messages.end();
}

/// The type of the error of this event. Empty if the message has not failed: a postponed one has not.
std::string_view error_of(const Event& event) {
  switch (event.type) {
    case EventType::failed:
    case EventType::parked:
      return event.error_class;
    case EventType::conflict:
    case EventType::torn:
      return to_string(event.type);
    default:
      return {};
  }
}

bool is_outcome(EventType type) {
  return type != EventType::retry && type != EventType::torn && type != EventType::lease_taken_over;
}

bool has_asked_for_later(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const RetryLater&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

class OpenTelemetrySpans::Impl {
 public:
  explicit Impl(OpenTelemetryOptions options) : factory_(std::move(options)) {}

  void begin(const Scope& scope) {
    const Open* const call = open_call();
    const bool is_one_of_several =
        scope.kind == ScopeKind::handler && scope.messages.size() == 1 && call != nullptr && call->messages.size() > 1;
    const bool is_recorded = call != nullptr && call->span && call->span->IsRecording();
    // First, so that `end` finds the scope also if the rest throws.
    Open& open = open_scopes().emplace_back(Open{.owner = this, .kind = scope.kind, .messages = scope.messages});
    if (scope.kind == ScopeKind::consume) {
      open.span = factory_.begin_call(scope);
    } else if (is_one_of_several) {
      open.span = factory_.begin_message(scope);
    } else if (is_recorded) {
      open.span = factory_.begin_part(scope);
    }
    const bool begins_message = scope.kind == ScopeKind::consume || is_one_of_several;
    activate(open, begins_message ? factory_.baggage_of(scope) : detail::Baggage());
  }

  void end(const Scope& scope, const std::exception_ptr& error) {
    if (open_scopes().empty()) return;
    if (open_scopes().back().owner != this || open_scopes().back().kind != scope.kind) return;
    const Open ended = std::move(open_scopes().back());
    open_scopes().pop_back();
    if (!ended.span) return;
    const bool has_failed = error && !ended.has_error && !has_asked_for_later(error);
    if (has_failed && ended.span->IsRecording()) set_error(*ended.span, error_class(error));
    ended.span->End();
  }

  void event(const Event& event) {
    Open* const call = open_call();
    if (call == nullptr || !call->span || !call->span->IsRecording() || event.type == EventType::purged) return;
    const bool is_only = call->messages.size() == 1;
    if (event.type == EventType::consumed && !is_only) return;
    if (!concerns(event, *call)) return;
    if (is_only && is_outcome(event.type)) {
      set_outcome(*call->span, event);
    } else {
      call->span->AddEvent("txinbox." + std::string(to_string(event.type)), factory_.attributes_of(event));
    }
    if (const std::string_view error = error_of(event); !error.empty()) {
      set_error(*call->span, error);
      call->has_error = true;
    }
  }

  void outgoing(const OutgoingMessage& message, detail::Headers& headers) {
    const SpanContext active = detail::active_span();
    if (!active.IsValid() || detail::has_trace_context(message.headers)) return;
    if (is_left_out(active)) return detail::set_trace_context(not_sampled(active), headers);
    if (!active.IsSampled()) return detail::set_trace_context(active, headers);
    const SpanPtr span = factory_.begin_create(message);
    detail::set_trace_context(span->GetContext(), headers);
    span->End();
  }

  void publish(const Publication& publication) {
    const auto ended = std::chrono::steady_clock::now();
    const std::string failure = publication.error ? error_class(publication.error) : std::string("no_result");
    for (std::size_t i = 0; i < publication.messages.size(); ++i) {
      const OutgoingMessage& message = publication.messages[i];
      const SpanContext created = detail::context_of(message.headers);
      if (!created.IsValid()) continue;
      const SpanPtr span = factory_.begin_send(message, created, publication.started, ended - publication.duration);
      if (i >= publication.results.size()) {
        set_error(*span, failure);
      } else if (publication.results[i].status != PublishStatus::confirmed) {
        set_error(*span, to_string(publication.results[i].status));
      }
      span->End({.end_steady_time = otel::common::SteadyTimestamp(ended)});
    }
  }

 private:
  /// Returns the call of this thread that began last. Null if there is none.
  Open* open_call() const {
    auto& scopes = open_scopes();
    const auto found = std::find_if(scopes.rbegin(), scopes.rend(), [&](const Open& each) {
      return each.owner == this && each.kind == ScopeKind::consume;
    });
    return found == scopes.rend() ? nullptr : &*found;
  }

  /// Whether the span is one of ours that the sampler of the program has left out.
  bool is_left_out(const SpanContext& span) const {
    return std::ranges::any_of(open_scopes(), [&](const Open& each) {
      return each.owner == this && each.span && !each.span->IsRecording() &&
             each.span->GetContext().span_id() == span.span_id();
    });
  }

  static void set_outcome(otel::trace::Span& span, const Event& event) {
    span.SetAttribute("txinbox.outcome", otel_text(to_string(event.type)));
    if (!event.age) return;
    span.SetAttribute("txinbox.duplicate.age", std::chrono::duration<double>(*event.age).count());
  }

  const detail::SpanFactory factory_;
};

OpenTelemetrySpans::OpenTelemetrySpans(OpenTelemetryOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

OpenTelemetrySpans::~OpenTelemetrySpans() = default;

void OpenTelemetrySpans::on_begin(const Scope& scope) { impl_->begin(scope); }

void OpenTelemetrySpans::on_end(const Scope& scope, const std::exception_ptr& error) { impl_->end(scope, error); }

void OpenTelemetrySpans::on_event(const Event& event) { impl_->event(event); }

void OpenTelemetrySpans::on_outgoing(const OutgoingMessage& message, std::map<std::string, std::string>& headers) {
  impl_->outgoing(message, headers);
}

void OpenTelemetrySpans::on_publish(const Publication& publication) { impl_->publish(publication); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
