#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <opentelemetry/context/runtime_context.h>
#include <opentelemetry/metrics/async_instruments.h>
#include <opentelemetry/metrics/meter.h>
#include <opentelemetry/metrics/meter_provider.h>
#include <opentelemetry/metrics/observer_result.h>
#include <opentelemetry/metrics/provider.h>
#include <opentelemetry/metrics/sync_instruments.h>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/source.hpp>

#include "attributes.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

namespace otel = ::opentelemetry;
using detail::attribute;
using detail::Attributes;
using otel::context::RuntimeContext;
using Meter = otel::nostd::shared_ptr<otel::metrics::Meter>;
using Counter = otel::nostd::unique_ptr<otel::metrics::Counter<std::uint64_t>>;
using Histogram = otel::nostd::unique_ptr<otel::metrics::Histogram<double>>;
using Result = otel::metrics::ObserverResultT<double>;

constexpr std::array outcomes{EventType::consumed,    EventType::already_consumed, EventType::conflict,
                              EventType::in_progress, EventType::parked,           EventType::failed,
                              EventType::discarded,   EventType::postponed};

/// The state of one `run`, for the gauges.
struct RunState {
  std::optional<SourceStatus> status = {};
  bool is_tripped = false;
  bool is_paused = false;
};

/// An instrument whose value is read when the program collects.
class Observed {
 public:
  using Read = std::function<void(Result&)>;

  Observed(otel::nostd::shared_ptr<otel::metrics::ObservableInstrument> instrument, Read read)
      : instrument_(std::move(instrument)), read_(std::move(read)) {
    instrument_->AddCallback(&Observed::call, this);
  }
  ~Observed() { instrument_->RemoveCallback(&Observed::call, this); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  static void call(otel::metrics::ObserverResult result, void* self) {
    const auto* const number = otel::nostd::get_if<otel::nostd::shared_ptr<Result>>(&result);
    if (number != nullptr) static_cast<const Observed*>(self)->read_(**number);
  }

  const otel::nostd::shared_ptr<otel::metrics::ObservableInstrument> instrument_;
  const Read read_;
};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

class OpenTelemetryMetrics::Impl {
 public:
  Impl() : meter_(otel::metrics::Provider::GetMeterProvider()->GetMeter(detail::scope_name, version())) {
    observe_runs();
    observe_relay();
  }

  void count(const Event& event) {
    if (is_new(event.consumer)) begin_at_zero(event);
    switch (event.type) {
      case EventType::retry:
        return retries_->Add(1, {attribute("consumer", event.consumer), attribute("class", event.error_class)});
      case EventType::lease_taken_over:
        return takeovers_->Add(1, {attribute("consumer", event.consumer)});
      case EventType::torn:
        return torn_->Add(1, {attribute("consumer", event.consumer)});
      case EventType::purged:
        return purged_->Add(event.rows, {attribute("consumer", event.consumer)});
      default:
        break;
    }
    if (std::ranges::find(outcomes, event.type) == outcomes.end()) return;
    const Attributes by_outcome{attribute("consumer", event.consumer), attribute("outcome", to_string(event.type))};
    messages_->Add(1, by_outcome);
    durations_->Record(seconds(event.duration), by_outcome, RuntimeContext::GetCurrent());
    if (event.age) {
      ages_->Record(std::max(seconds(*event.age), 0.0), Attributes{attribute("consumer", event.consumer)},
                    RuntimeContext::GetCurrent());
    }
    if (event.type == EventType::failed || (event.type == EventType::parked && !event.error_class.empty())) {
      failures_->Add(1, {attribute("consumer", event.consumer), attribute("class", event.error_class)});
    }
  }

  void count(const RunEvent& event) {
    const Attributes run{attribute("source", event.source), attribute("consumer", event.consumer)};
    keep_state(event);
    switch (event.type) {
      case RunEventType::acknowledged:
        return acknowledged_->Add(event.count, run);
      case RunEventType::retry:
        return run_retries_->Add(1, run);
      case RunEventType::dead_letter: {
        Attributes by_reason = run;
        by_reason.push_back(attribute("reason", event.reason));
        return dead_letters_->Add(1, by_reason);
      }
      case RunEventType::dead_letter_failed:
        return letter_failures_->Add(1, run);
      case RunEventType::unavailable:
        return outages_->Add(1, run);
      case RunEventType::dropped:
        return dropped_->Add(event.count, run);
      case RunEventType::tripped:
        return trips_->Add(1, run);
      case RunEventType::held:
        return held_->Add(1, run);
      default:
        return;
    }
  }

  void count(const RelayEvent& event) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_first = !std::exchange(has_relay_, true);
      if (event.type == RelayEventType::parts) parts_ = static_cast<double>(event.parts);
    }
    if (is_first) {
      for (const auto* counter : {&published_, &relay_failures_, &relay_parked_, &relay_errors_}) (*counter)->Add(0);
    }
    switch (event.type) {
      case RelayEventType::published:
        return published_->Add(event.messages);
      case RelayEventType::failed:
        return relay_failures_->Add(1);
      case RelayEventType::parked:
        return relay_parked_->Add(1);
      case RelayEventType::error:
        return relay_errors_->Add(1);
      case RelayEventType::parts:
        return;
    }
  }

  void set(const OutboxStatus& status) {
    const std::lock_guard lock(mutex_);
    outbox_ = status;
  }

 private:
  Counter counter(const char* name, const char* help) { return meter_->CreateUInt64Counter(name, help); }
  Histogram histogram(const char* name, const char* help) { return meter_->CreateDoubleHistogram(name, help, "s"); }

  bool is_new(std::string_view consumer) {
    const std::lock_guard lock(mutex_);
    if (consumers_.contains(consumer)) return false;
    return consumers_.emplace(consumer).second;
  }

  /// So that `increase` of Prometheus sees the first event of each kind.
  void begin_at_zero(const Event& event) {
    for (const EventType outcome : outcomes) {
      messages_->Add(0, {attribute("consumer", event.consumer), attribute("outcome", to_string(outcome))});
    }
    takeovers_->Add(0, {attribute("consumer", event.consumer)});
    torn_->Add(0, {attribute("consumer", event.consumer)});
    purged_->Add(0, {attribute("consumer", event.consumer)});
  }

  void keep_state(const RunEvent& event) {
    bool is_first = false;
    {
      const std::lock_guard lock(mutex_);
      const auto [at, was_added] =
          runs_.try_emplace({std::string(event.source), std::string(event.consumer)}, RunState{});
      RunState& state = at->second;
      is_first = was_added;
      if (event.type == RunEventType::status) state.status = *event.status;
      if (event.type == RunEventType::tripped) state.is_tripped = true;
      if (event.type == RunEventType::resumed) state.is_tripped = false;
      if (event.type == RunEventType::paused) state.is_paused = true;
      if (event.type == RunEventType::unpaused) state.is_paused = false;
    }
    if (!is_first) return;
    const Attributes run{attribute("source", event.source), attribute("consumer", event.consumer)};
    for (const auto* counter :
         {&acknowledged_, &run_retries_, &letter_failures_, &outages_, &dropped_, &trips_, &held_}) {
      (*counter)->Add(0, run);
    }
  }

  void observe_runs() {
    gauge_of_runs("txinbox.source.connected", "1: there is a connection to the broker.", [](const RunState& run) {
      return run.status ? std::optional<double>(run.status->connected ? 1 : 0) : std::nullopt;
    });
    gauge_of_runs("txinbox.source.lanes", "Lanes of the broker that this source has, such as partitions.",
                  [](const RunState& run) {
                    return run.status ? std::optional(static_cast<double>(run.status->lanes)) : std::nullopt;
                  });
    gauge_of_runs("txinbox.source.lag", "Messages that wait at the broker.", [](const RunState& run) {
      return run.status && run.status->lag ? std::optional(static_cast<double>(*run.status->lag)) : std::nullopt;
    });
    gauge_of_runs("txinbox.source.tripped", "1: run waits until the handler works again.",
                  [](const RunState& run) { return std::optional<double>(run.is_tripped ? 1 : 0); });
    gauge_of_runs("txinbox.source.paused", "1: an operator has paused the consumer.",
                  [](const RunState& run) { return std::optional<double>(run.is_paused ? 1 : 0); });
    observe(meter_->CreateDoubleObservableCounter("txinbox.source.reconnects",
                                                  "New connections to the broker after a loss."),
            [this](Result& result) {
              each_run(result, [](const RunState& run) {
                return run.status ? std::optional(static_cast<double>(run.status->reconnects)) : std::nullopt;
              });
            });
  }

  void observe_relay() {
    observe(
        meter_->CreateDoubleObservableGauge("txinbox.relay.parts", "Parts of the outbox that this relay publishes."),
        [this](Result& result) {
          if (parts_) result.Observe(*parts_);
        });
    observe(
        meter_->CreateDoubleObservableGauge("txinbox.outbox.messages", "Messages in the outbox, by their state."),
        [this](Result& result) {
          if (!outbox_) return;
          result.Observe(static_cast<double>(outbox_->waiting), {attribute("state", to_string(OutboxState::waiting))});
          result.Observe(static_cast<double>(outbox_->failing), {attribute("state", to_string(OutboxState::failing))});
          result.Observe(static_cast<double>(outbox_->parked), {attribute("state", to_string(OutboxState::parked))});
        });
    observe(meter_->CreateDoubleObservableGauge("txinbox.outbox.oldest",
                                                "The age of the oldest message that is not published.", "s"),
            [this](Result& result) {
              if (outbox_) result.Observe(seconds(outbox_->oldest_age));
            });
    observe(meter_->CreateDoubleObservableGauge("txinbox.outbox.free_parts",
                                                "Parts of the outbox that no relay publishes."),
            [this](Result& result) {
              if (outbox_) result.Observe(outbox_->free_parts);
            });
  }

  using ValueOf = std::optional<double> (*)(const RunState&);

  void gauge_of_runs(const char* name, const char* help, ValueOf value_of) {
    observe(meter_->CreateDoubleObservableGauge(name, help),
            [this, value_of](Result& result) { each_run(result, value_of); });
  }

  void each_run(Result& result, ValueOf value_of) const {
    for (const auto& [names, run] : runs_) {
      const auto value = value_of(run);
      if (!value) continue;
      result.Observe(*value, {attribute("source", names.first), attribute("consumer", names.second)});
    }
  }

  void observe(otel::nostd::shared_ptr<otel::metrics::ObservableInstrument> instrument, Observed::Read read) {
    observed_.push_back(std::make_unique<Observed>(std::move(instrument), [this, read](Result& result) {
      const std::lock_guard lock(mutex_);
      read(result);
    }));
  }

  const Meter meter_;

  const Counter messages_ = counter("txinbox.messages", "Deliveries by how they ended.");
  const Histogram durations_ =
      histogram("txinbox.duration",
                "Time from the call of consume to the end of the delivery; in a batch, to the end of the batch.");
  const Histogram ages_ =
      histogram("txinbox.duplicate.age",
                "Age of the original when its duplicate came; without those that a memory of recent keys answered.");
  const Counter retries_ = counter("txinbox.retries", "Transactions that ran again after a transient error.");
  const Counter failures_ = counter("txinbox.failures", "Deliveries that failed, by their error.");
  const Counter takeovers_ = counter("txinbox.lease.takeovers", "Leases that had expired and were taken over.");
  const Counter torn_ = counter("txinbox.torn", "Claims that a handler committed itself.");
  const Counter purged_ = counter("txinbox.purged.rows", "Old rows that were removed.");

  const Counter acknowledged_ =
      counter("txinbox.source.acknowledged", "Messages that were acknowledged at the broker.");
  const Counter run_retries_ = counter("txinbox.source.retries", "How often a message had to run again.");
  const Counter dropped_ = counter("txinbox.source.dropped", "Messages that the broker has taken back.");
  const Counter outages_ = counter("txinbox.source.outages", "How often everything waited for the database.");
  const Counter dead_letters_ = counter("txinbox.source.dead_letters", "Confirmed dead letters, by their reason.");
  const Counter letter_failures_ =
      counter("txinbox.source.dead_letter.failures", "Dead letters that the broker did not confirm.");
  const Counter trips_ =
      counter("txinbox.source.trips", "How often the handler has failed for so many keys that run waits for it.");
  const Counter held_ =
      counter("txinbox.source.held", "Parked messages that keep their place until an operator has decided.");

  const Counter published_ = counter("txinbox.relay.published", "Messages that the broker has confirmed.");
  const Counter relay_failures_ =
      counter("txinbox.relay.failures", "How often a message was not confirmed and is tried again.");
  const Counter relay_parked_ = counter("txinbox.relay.parked", "Messages that were given up.");
  const Counter relay_errors_ =
      counter("txinbox.relay.errors", "How often the publisher threw, or the database failed.");

  std::mutex mutex_;
  std::set<std::string, std::less<>> consumers_;
  std::map<std::pair<std::string, std::string>, RunState> runs_;  ///< By source and consumer.
  bool has_relay_ = false;                                        ///< Whether a relay had an event.
  std::optional<double> parts_;
  std::optional<OutboxStatus> outbox_;

  std::vector<std::unique_ptr<Observed>> observed_;  ///< The last member: its callbacks read the others.
};

OpenTelemetryMetrics::OpenTelemetryMetrics() : impl_(std::make_unique<Impl>()) {}

OpenTelemetryMetrics::~OpenTelemetryMetrics() = default;

void OpenTelemetryMetrics::on_event(const Event& event) { impl_->count(event); }

void OpenTelemetryMetrics::on_run_event(const RunEvent& event) { impl_->count(event); }

void OpenTelemetryMetrics::on_relay_event(const RelayEvent& event) { impl_->count(event); }

void OpenTelemetryMetrics::set(const OutboxStatus& status) { impl_->set(status); }

TXINBOX_NAMESPACE_END
}  // namespace txinbox
