#pragma once

/// @file
/// Spans and metrics by the API of OpenTelemetry: listeners for consumers, `run` and relays.

#include <exception>
#include <map>
#include <memory>
#include <string>

#include <txinbox/listener.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

struct OutboxStatus;

/// The options of `OpenTelemetrySpans`: what a listener cannot know, and how far it trusts the messages.
struct OpenTelemetryOptions {
  /// `messaging.system` of the messages that come in: "kafka", "rabbitmq", "rocketmq", or another value of the
  /// conventions. Empty: there is no broker, for example behind an HTTP guard. Then the spans of these messages are
  /// INTERNAL, and have no attributes `messaging.*`.
  std::string system = {};

  /// `messaging.system` of the messages that go out through the outbox. Empty: as `system`.
  std::string outgoing_system = {};

  /// `messaging.destination.name` of the messages that come in: the topic or the queue. It is a part of the span's
  /// name: "process orders". Empty: the name has the consumer instead.
  std::string destination = {};

  /// Whether the span of one message has its business key, as `txinbox.business_key`. It can be personal data. Without
  /// it, a message id that is the business key is left out, too.
  bool business_keys = false;

  /// Whether the first delivery of a message continues the trace of its producer. If not, it begins a trace of its own,
  /// with a link, and its baggage is not active. Set it to false for messages of strangers, such as the requests of
  /// public clients: otherwise they choose the id of the trace and whether it is sampled.
  bool continue_traces = true;
};

/// A listener that makes spans, by the semantic conventions of OpenTelemetry for messaging, version 1.29. It uses the
/// API of OpenTelemetry C++, and the program chooses the SDK:
///
///     const auto spans = std::make_shared<txinbox::OpenTelemetrySpans>(
///         txinbox::OpenTelemetryOptions{.system = "kafka", .destination = "orders"});
///     txinbox::TxConsumer consumer(pool, "order-service", {.listeners = {spans}});
///     txinbox::OutboxRelay relay(pool, publish, {.listeners = {spans}});
///
/// - "process orders" (CONSUMER) is one message. In a call with one message, it is the whole call, with "attempt" for
///   each run of the transaction and "handle" for the handler. In a call with several messages, it is the handler of
///   this message.
/// - "consume_batch orders" (CONSUMER) is a call with several messages, with "attempt" for each run of the transaction,
///   and "handle" if one handler gets all messages. It begins a trace of its own.
/// - Both have a link to each of their messages: to the span that `traceparent` in `Message::incoming` names.
/// - The first delivery of a message also continues the trace of that span. A later delivery, and a later run of `run`,
///   do not: a retry after hours must not stretch a trace. If a span is active when `consume` is called, that span is
///   the parent of the call.
/// - While a handler runs, its span is active. If the handler has one message, the message's `baggage` is active, too.
/// - "create TOPIC" (PRODUCER) is a message that a handler adds to the outbox. The message carries the context of this
///   span. A message that has `traceparent` or `tracestate` of its own keeps it, and gets no span.
/// - "send TOPIC" (CLIENT) is a message in a call of the relay's publisher. It continues the trace that the message
///   carries. A message without `traceparent` gets no span.
///
/// A part that failed has `error.type`, which is `txinbox::error_class`. A span never has the text of an error, because
/// it can hold bound values.
///
/// If a call is not sampled, its parts have no spans. Its trace still goes on to the next service, not sampled.
///
/// @threads any number.
class OpenTelemetrySpans : public Listener {
 public:
  /// Takes the tracer of the global `TracerProvider`. So set that provider first: what is made before gives no spans.
  explicit OpenTelemetrySpans(OpenTelemetryOptions options = {});
  OpenTelemetrySpans(const OpenTelemetrySpans&) = delete;
  OpenTelemetrySpans& operator=(const OpenTelemetrySpans&) = delete;
  ~OpenTelemetrySpans() override;

  void on_begin(const Scope& scope) override;                                 ///< Begins a span.
  void on_end(const Scope& scope, const std::exception_ptr& error) override;  ///< Ends it.
  void on_event(const Event& event) override;                                 ///< Says how a delivery ended.
  void on_outgoing(const OutgoingMessage& message,
                   std::map<std::string, std::string>& headers) override;  ///< Sets `traceparent` and `tracestate`.
  void on_publish(const Publication& publication) override;                ///< Makes the spans of a relay.

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A listener that counts as `Metrics` does, with the instruments of OpenTelemetry instead of a text for Prometheus.
/// One object is enough for a process.
///
/// The instruments have the names of docs/operations/watching.md with dots, and without the unit: `txinbox.messages` is
/// `txinbox_messages_total` in Prometheus, and `txinbox.duration` is `txinbox_duration_seconds`. So the alerts and the
/// dashboard also work with a collector that exports to Prometheus. Durations are histograms in seconds. The default
/// buckets of the SDK are for milliseconds, so set others with a view: `MetricsOptions::default_duration_buckets`. The
/// SDK limits how many combinations of labels an instrument has.
///
/// @threads any number.
class OpenTelemetryMetrics : public Listener {
 public:
  /// Takes the meter of the global `MeterProvider`. So set that provider first: what is made before counts nothing.
  OpenTelemetryMetrics();
  OpenTelemetryMetrics(const OpenTelemetryMetrics&) = delete;
  OpenTelemetryMetrics& operator=(const OpenTelemetryMetrics&) = delete;
  ~OpenTelemetryMetrics() override;

  void on_event(const Event& event) override;             ///< Counts the event of a consumer or a purge.
  void on_run_event(const RunEvent& event) override;      ///< Counts the event of `run`.
  void on_relay_event(const RelayEvent& event) override;  ///< Counts the event of a relay.

  /// Sets the gauges of the outbox's backlog, as `Metrics::set`.
  void set(const OutboxStatus& status);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

TXINBOX_API_END
}  // namespace txinbox
