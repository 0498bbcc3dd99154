#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/metrics.hpp>
#include <txinbox/outbox_messages.hpp>

#include "support/prometheus_text.hpp"

namespace txinbox::test {
namespace {

TEST_CASE("the metrics of a relay count its work, and show the backlog") {
  Metrics metrics;
  metrics.on_relay_event({.type = RelayEventType::published, .messages = 40});
  metrics.on_relay_event({.type = RelayEventType::published, .messages = 2});
  metrics.on_relay_event({.type = RelayEventType::failed});
  metrics.on_relay_event({.type = RelayEventType::failed});
  metrics.on_relay_event({.type = RelayEventType::parked});
  metrics.on_relay_event({.type = RelayEventType::error});
  metrics.on_relay_event({.type = RelayEventType::parts, .parts = 64});
  metrics.on_relay_event({.type = RelayEventType::parts, .parts = 32});
  CHECK(metrics.text().find("txinbox_outbox") == std::string::npos);
  OutboxStatus status;
  status.waiting = 7;
  status.failing = 1;
  status.parked = 3;
  status.oldest_age = std::chrono::milliseconds(1'500);
  status.free_parts = 4;
  metrics.set(status);
  const PrometheusText text(metrics.text());
  CHECK(text.value("txinbox_relay_published_total", {}) == 42);
  CHECK(text.value("txinbox_relay_failures_total", {}) == 2);
  CHECK(text.value("txinbox_relay_parked_total", {}) == 1);
  CHECK(text.value("txinbox_relay_errors_total", {}) == 1);
  CHECK(text.value("txinbox_relay_parts", {}) == 32);
  CHECK(text.value("txinbox_outbox_messages", {{"state", "waiting"}}) == 7);
  CHECK(text.value("txinbox_outbox_messages", {{"state", "failing"}}) == 1);
  CHECK(text.value("txinbox_outbox_messages", {{"state", "parked"}}) == 3);
  CHECK(text.value("txinbox_outbox_oldest_seconds", {}) == 1.5);
  CHECK(text.value("txinbox_outbox_free_parts", {}) == 4);
}

}  // namespace
}  // namespace txinbox::test
