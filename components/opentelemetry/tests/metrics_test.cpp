// OpenTelemetryMetrics and Metrics get the same events, and must have the same values under the same names.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <opentelemetry/metrics/noop.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/sdk/metrics/data/metric_data.h>
#include <opentelemetry/sdk/metrics/export/metric_producer.h>
#include <opentelemetry/sdk/metrics/meter_provider.h>
#include <opentelemetry/sdk/metrics/metric_reader.h>
#include <txinbox/metrics.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/source.hpp>

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
namespace otel = ::opentelemetry;
namespace sdk = otel::sdk::metrics;

/// The value of each sample by its name and its labels: `name{label="value"}`.
using Samples = std::map<std::string, double>;

class Reader final : public sdk::MetricReader {
 public:
  sdk::AggregationTemporality GetAggregationTemporality(sdk::InstrumentType) const noexcept override {
    return sdk::AggregationTemporality::kCumulative;
  }

 private:
  bool OnForceFlush(std::chrono::microseconds) noexcept override { return true; }
  bool OnShutDown(std::chrono::microseconds) noexcept override { return true; }
};

double number_of(const sdk::ValueType& value) {
  return otel::nostd::visit([](auto each) { return static_cast<double>(each); }, value);
}

std::string labels_of(const sdk::PointAttributes& attributes) {
  std::string labels;
  for (const auto& [name, value] : attributes) {
    labels += (labels.empty() ? "" : ",") + name + "=\"" + otel::nostd::get<std::string>(value) + "\"";
  }
  return labels.empty() ? "" : "{" + labels + "}";
}

/// The name that an exporter for Prometheus makes of the instrument's.
std::string prometheus_name(const sdk::InstrumentDescriptor& instrument) {
  std::string name = instrument.name_;
  std::ranges::replace(name, '.', '_');
  if (instrument.unit_ == "s") name += "_seconds";
  const bool is_counter =
      instrument.type_ == sdk::InstrumentType::kCounter || instrument.type_ == sdk::InstrumentType::kObservableCounter;
  return is_counter ? name + "_total" : name;
}

/// A real SDK. While it exists, it is the provider of this process.
class Meters {
 public:
  Meters() {
    auto provider = std::make_unique<sdk::MeterProvider>();
    provider->AddMetricReader(reader_);
    otel::metrics::Provider::SetMeterProvider(
        otel::nostd::shared_ptr<otel::metrics::MeterProvider>(provider.release()));
  }
  ~Meters() {
    otel::metrics::Provider::SetMeterProvider(
        otel::nostd::shared_ptr<otel::metrics::MeterProvider>(new otel::metrics::NoopMeterProvider));
  }
  Meters(const Meters&) = delete;
  Meters& operator=(const Meters&) = delete;

  Samples collect() const {
    Samples samples;
    reader_->Collect([&](sdk::ResourceMetrics& all) {
      for (const auto& scope : all.scope_metric_data_) {
        for (const auto& metric : scope.metric_data_) {
          for (const auto& point : metric.point_data_attr_) {
            add(samples, prometheus_name(metric.instrument_descriptor), point);
          }
        }
      }
      return true;
    });
    return samples;
  }

 private:
  static void add(Samples& samples, const std::string& name, const sdk::PointDataAttributes& point) {
    const std::string labels = labels_of(point.attributes);
    if (const auto* sum = otel::nostd::get_if<sdk::SumPointData>(&point.point_data)) {
      samples[name + labels] = number_of(sum->value_);
    } else if (const auto* last = otel::nostd::get_if<sdk::LastValuePointData>(&point.point_data)) {
      samples[name + labels] = number_of(last->value_);
    } else if (const auto* histogram = otel::nostd::get_if<sdk::HistogramPointData>(&point.point_data)) {
      samples[name + "_count" + labels] = static_cast<double>(histogram->count_);
      samples[name + "_sum" + labels] = number_of(histogram->sum_);
    }
  }

  const std::shared_ptr<Reader> reader_ = std::make_shared<Reader>();
};

/// Sorts the labels of a sample by their names, as the SDK does.
std::string sorted(const std::string& sample) {
  const std::size_t open = sample.find('{');
  if (open == std::string::npos) return sample;
  std::vector<std::string> labels;
  std::istringstream list(sample.substr(open + 1, sample.size() - open - 2));
  for (std::string label; std::getline(list, label, ',');) labels.push_back(label);
  std::ranges::sort(labels);
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return sample.substr(0, open) + "{" + text + "}";
}

/// The samples of a text for Prometheus, without the buckets, which are an option of the SDK.
Samples samples_of(const std::string& text) {
  Samples samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t blank = line.rfind(' ');
    if (line.starts_with('#') || line.find("_bucket{") != std::string::npos) continue;
    samples[sorted(line.substr(0, blank))] = std::stod(line.substr(blank + 1));
  }
  return samples;
}

struct Both {
  Meters meters;
  const std::shared_ptr<Metrics> text = std::make_shared<Metrics>();
  const std::shared_ptr<OpenTelemetryMetrics> instruments = std::make_shared<OpenTelemetryMetrics>();

  void event(const Event& event) {
    text->on_event(event);
    instruments->on_event(event);
  }

  void run_event(const RunEvent& event) {
    text->on_run_event(event);
    instruments->on_run_event(event);
  }

  void relay_event(const RelayEvent& event) {
    text->on_relay_event(event);
    instruments->on_relay_event(event);
  }

  void check_equal() const {
    const Samples expected = samples_of(text->text());
    const Samples measured = meters.collect();
    CHECK(expected.size() >= 5);
    for (const auto& [name, value] : expected) {
      CAPTURE(name);
      REQUIRE(measured.contains(name));
      CHECK(measured.at(name) == doctest::Approx(value));
    }
    for (const auto& [name, value] : measured) {
      CAPTURE(name);
      CHECK(expected.contains(name));
    }
  }
};

TEST_CASE("events of consumers and purges") {
  Both both;
  for (const EventType type :
       {EventType::consumed, EventType::already_consumed, EventType::conflict, EventType::in_progress,
        EventType::parked, EventType::failed, EventType::discarded, EventType::postponed}) {
    both.event({.type = type, .consumer = "orders", .duration = 12ms});
  }
  both.check_equal();
  both.event({.type = EventType::already_consumed, .consumer = "orders", .duration = 1ms, .age = 90s});
  both.event({.type = EventType::failed, .consumer = "orders", .duration = 1ms, .error_class = "deadlock"});
  both.event({.type = EventType::parked, .consumer = "orders", .duration = 1ms, .error_class = "rejected"});
  both.event({.type = EventType::retry, .consumer = "stock", .error_class = "deadlock"});
  both.event({.type = EventType::torn, .consumer = "orders"});
  both.event({.type = EventType::lease_taken_over, .consumer = "orders"});
  both.event({.type = EventType::purged, .consumer = "orders", .rows = 1'000});
  both.check_equal();
}

TEST_CASE("events of run") {
  Both both;
  const auto count = [&](RunEventType type) {
    both.run_event({.type = type, .source = "kafka orders", .consumer = "orders", .count = 3, .reason = "parked"});
  };
  for (const RunEventType type : {RunEventType::acknowledged, RunEventType::retry, RunEventType::dead_letter,
                                  RunEventType::dead_letter_failed, RunEventType::unavailable, RunEventType::dropped,
                                  RunEventType::tripped, RunEventType::paused, RunEventType::held}) {
    count(type);
    both.check_equal();
  }
  count(RunEventType::resumed);
  count(RunEventType::unpaused);
  both.check_equal();
  const SourceStatus lag_not_known{.name = "kafka orders", .connected = false, .lanes = 4, .reconnects = 2};
  const SourceStatus connected{.name = "kafka orders", .connected = true, .lag = 7, .lanes = 3, .reconnects = 3};
  for (const SourceStatus& status : {lag_not_known, connected}) {
    both.run_event({.type = RunEventType::status, .source = "kafka orders", .consumer = "orders", .status = &status});
    both.check_equal();
  }
}

TEST_CASE("events of relays, and the backlog of the outbox") {
  Both both;
  both.relay_event({.type = RelayEventType::parts, .parts = 64});
  both.check_equal();
  both.relay_event({.type = RelayEventType::published, .messages = 5});
  both.relay_event({.type = RelayEventType::failed});
  both.relay_event({.type = RelayEventType::parked});
  both.relay_event({.type = RelayEventType::error});
  both.check_equal();
  OutboxStatus status;
  status.waiting = 4;
  status.failing = 1;
  status.parked = 2;
  status.oldest_age = 3s;
  status.free_parts = 8;
  both.text->set(status);
  both.instruments->set(status);
  both.check_equal();
}

TEST_CASE("the gauges are those of the object that exists") {
  const Meters meters;
  for (const std::size_t parts : {64U, 32U}) {
    OpenTelemetryMetrics metrics;
    metrics.on_relay_event({.type = RelayEventType::parts, .parts = parts});
    CHECK(meters.collect().at("txinbox_relay_parts") == static_cast<double>(parts));
  }
  (void)meters.collect();  // calls nothing that is destroyed
}

}  // namespace
}  // namespace txinbox::test
