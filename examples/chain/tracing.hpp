#pragma once

#include <memory>

#include <txinbox/txinbox.hpp>

namespace chain {

/// The spans of a service. tracing.cpp sends them to a collector. Without OpenTelemetry, no_tracing.cpp makes none, and
/// a trace still goes on from the consumed message to those of the outbox.
class Tracing {
 public:
  /// `topic` is what the service consumes.
  Tracing(const char* service, const char* topic);

  /// Sends the last spans.
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /// For the consumer and the relay.
  const txinbox::Listeners& listeners() const { return listeners_; }

 private:
  txinbox::Listeners listeners_;
};

}  // namespace chain
