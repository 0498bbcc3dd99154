#pragma once

#include <array>
#include <memory>
#include <string>

#include <soci/soci.h>
#include <txinbox/delivery.hpp>
#include <txinbox/incoming.hpp>
#include <txinbox/opentelemetry.hpp>

#include "traces.hpp"

namespace txinbox::test {

inline std::shared_ptr<Listener> spans_of_kafka(bool business_keys = false, bool continue_traces = true) {
  return std::make_shared<OpenTelemetrySpans>(OpenTelemetryOptions{
      .system = "kafka", .destination = "orders", .business_keys = business_keys, .continue_traces = continue_traces});
}

inline const std::string sent_link = sent_trace + "-" + sent_span;

/// A handler that does nothing.
inline void nothing(soci::session&, Delivery&) {}

/// A delivery with the context of a producer.
struct Sent {
  std::array<IncomingHeader, 2> headers{
      {{.name = "traceparent", .value = sent_context}, {.name = "baggage", .value = "tenant=blue"}}};
  Incoming incoming{.id = "orders/3@42", .headers = headers};
};

}  // namespace txinbox::test
