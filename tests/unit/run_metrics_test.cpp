#include <chrono>
#include <functional>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/metrics.hpp>
#include <txinbox/source.hpp>

#include "support/prometheus_text.hpp"

namespace txinbox::test {
namespace {

const PrometheusText::Labels orders = {{"consumer", "orders"}, {"source", "kafka orders"}};

RunEvent event(RunEventType type) { return {.type = type, .source = "kafka orders", .consumer = "orders"}; }

TEST_CASE("the metrics of run count what happens at the broker") {
  Metrics metrics;
  RunEvent acknowledged = event(RunEventType::acknowledged);
  acknowledged.count = 40;
  metrics.on_run_event(acknowledged);
  acknowledged.count = 2;
  metrics.on_run_event(acknowledged);
  metrics.on_run_event(event(RunEventType::retry));
  RunEvent dropped = event(RunEventType::dropped);
  dropped.count = 3;
  metrics.on_run_event(dropped);
  metrics.on_run_event(event(RunEventType::unavailable));
  metrics.on_run_event(event(RunEventType::dead_letter_failed));
  metrics.on_run_event(event(RunEventType::tripped));
  metrics.on_run_event(event(RunEventType::paused));
  metrics.on_run_event(event(RunEventType::held));
  RunEvent letter = event(RunEventType::dead_letter);
  letter.reason = "parked";
  metrics.on_run_event(letter);
  metrics.on_run_event(letter);
  {
    const PrometheusText text(metrics.text());
    CHECK(text.value("txinbox_source_acknowledged_total", orders) == 42);
    CHECK(text.value("txinbox_source_retries_total", orders) == 1);
    CHECK(text.value("txinbox_source_dropped_total", orders) == 3);
    CHECK(text.value("txinbox_source_outages_total", orders) == 1);
    CHECK(text.value("txinbox_source_dead_letter_failures_total", orders) == 1);
    CHECK(text.value("txinbox_source_trips_total", orders) == 1);
    CHECK(text.value("txinbox_source_held_total", orders) == 1);
    CHECK(text.value("txinbox_source_tripped", orders) == 1);
    CHECK(text.value("txinbox_source_paused", orders) == 1);
    auto parked = orders;
    parked["reason"] = "parked";
    CHECK(text.value("txinbox_source_dead_letters_total", parked) == 2);
    CHECK(metrics.text().find("txinbox_source_lag{") == std::string::npos);  // no status has arrived
  }
  const SourceStatus status{.name = "kafka orders", .connected = true, .lag = 7, .lanes = 4, .reconnects = 1};
  RunEvent told = event(RunEventType::status);
  told.status = &status;
  metrics.on_run_event(told);
  metrics.on_run_event(event(RunEventType::resumed));
  metrics.on_run_event(event(RunEventType::unpaused));
  CHECK(PrometheusText(metrics.text()).value("txinbox_source_paused", orders) == 0);
  CHECK(PrometheusText(metrics.text()).value("txinbox_source_tripped", orders) == 0);
  const PrometheusText text(metrics.text());
  CHECK(text.value("txinbox_source_connected", orders) == 1);
  CHECK(text.value("txinbox_source_lanes", orders) == 4);
  CHECK(text.value("txinbox_source_lag", orders) == 7);
  CHECK(text.value("txinbox_source_reconnects_total", orders) == 1);
}

TEST_CASE("a name or a reason that is not UTF-8 does not make the page unreadable") {
  Metrics metrics;
  metrics.on_run_event({.type = RunEventType::dead_letter, .source = "\xff", .consumer = "orders", .reason = "\xfe"});
  const PrometheusText text(metrics.text());
  CHECK(text.value("txinbox_source_dead_letters_total",
                   {{"consumer", "orders"}, {"source", "other"}, {"reason", "other"}}) == 1);
}

}  // namespace
}  // namespace txinbox::test
