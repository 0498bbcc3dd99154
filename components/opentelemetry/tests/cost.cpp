// The cost of the spans: `consume` on SQLite without a listener, with one and no SDK, with an SDK that samples nothing,
// and with one that samples all. The four take turns, message by message, so that they meet the same state of the
// machine. Prints the medians, and their ratios to the first.
//
// Usage: txinbox_tracing_cost [MESSAGES]

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <opentelemetry/exporters/memory/in_memory_span_exporter_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/samplers/always_off_factory.h>
#include <opentelemetry/sdk/trace/samplers/always_on_factory.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>
#include <soci/soci.h>
#include <txinbox/incoming.hpp>
#include <txinbox/opentelemetry.hpp>
#include <txinbox/txinbox.hpp>

namespace {

namespace otel = opentelemetry;
namespace sdk = otel::sdk::trace;
using Clock = std::chrono::steady_clock;
using Provider = otel::nostd::shared_ptr<otel::trace::TracerProvider>;

const std::string context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

Provider provider_with(std::unique_ptr<sdk::Sampler> sampler) {
  std::shared_ptr<otel::exporter::memory::InMemorySpanData> data;
  auto exporter = otel::exporter::memory::InMemorySpanExporterFactory::Create(data);
  auto provider = sdk::TracerProviderFactory::Create(
      sdk::BatchSpanProcessorFactory::Create(std::move(exporter), sdk::BatchSpanProcessorOptions()),
      otel::sdk::resource::Resource::Create({}), std::move(sampler));
  return Provider(provider.release());
}

/// A database file with the table of the service.
txinbox::Pool open_service(const std::filesystem::path& folder, bool durable) {
  const std::string file = (folder / (durable ? "durable.db" : "not-durable.db")).string();
  auto pool =
      txinbox::open_pool("sqlite:" + file, {.connections = 1, .on_connect = [durable](soci::session& sql) {
                                              sql << std::string("pragma synchronous = ") + (durable ? "full" : "off");
                                            }});
  auto connection = pool.acquire();
  txinbox::migrate(connection);
  soci::session& sql = connection;
  sql << "create table t_order(no text primary key, qty integer)";
  return pool;
}

/// One consumer. All of them share the database file, because the place of a file on the disk changes its times.
class Way {
 public:
  Way(std::string name, txinbox::Pool& pool, txinbox::Listeners listeners)
      : name_(std::move(name)), consumer_(pool, "order-service", {.listeners = std::move(listeners)}) {}

  /// `no` is the key of the order. All ways have keys of the same kind, so their rows are in the same pages.
  void consume(const std::string& no) {
    const std::vector<txinbox::IncomingHeader> headers{{.name = "traceparent", .value = context}};
    const txinbox::Incoming incoming{.id = "orders/0@1", .headers = headers};
    const auto begun = Clock::now();
    (void)consumer_.consume({.business_key = no, .incoming = &incoming}, [&](soci::session& sql, txinbox::Delivery&) {
      sql << "insert into t_order(no, qty) values (:no, 2)", soci::use(no);
    });
    microseconds_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count());
  }

  double median() {
    auto middle = microseconds_.begin() + static_cast<std::ptrdiff_t>(microseconds_.size() / 2);
    std::nth_element(microseconds_.begin(), middle, microseconds_.end());
    return *middle;
  }

  const std::string& name() const { return name_; }

 private:
  const std::string name_;
  txinbox::TxConsumer consumer_;
  std::vector<double> microseconds_;
};

txinbox::Listeners spans() {
  return {std::make_shared<txinbox::OpenTelemetrySpans>(
      txinbox::OpenTelemetryOptions{.system = "kafka", .destination = "orders"})};
}

void measure(const std::filesystem::path& folder, bool durable, int messages) {
  txinbox::Pool pool = open_service(folder, durable);
  Way plain("none", pool, {});
  Way no_sdk("no SDK", pool, spans());
  otel::trace::Provider::SetTracerProvider(provider_with(sdk::AlwaysOffSamplerFactory::Create()));
  Way off("not sampled", pool, spans());
  otel::trace::Provider::SetTracerProvider(provider_with(sdk::AlwaysOnSamplerFactory::Create()));
  Way on("sampled", pool, spans());
  const std::array<Way*, 4> ways{&plain, &no_sdk, &off, &on};
  std::array<Way*, 4> turns = ways;
  std::mt19937 random(1);
  for (int i = 0; i < messages; ++i) {
    std::ranges::shuffle(turns, random);  // none always follows the same one
    for (Way* way : turns) way->consume("order" + std::to_string(1'000'000'000 + random() % 1'000'000'000));
  }
  for (Way* way : ways) {
    std::printf("%-12s  %-11s  %8.1f us  %5.3f\n", durable ? "durable" : "not durable", way->name().c_str(),
                way->median(), way->median() / plain.median());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int messages = argc > 1 ? std::atoi(argv[1]) : 4'000;
  const auto folder = std::filesystem::temp_directory_path() / ("txinbox-cost." + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  measure(folder, false, messages);
  measure(folder, true, messages);
  std::filesystem::remove_all(folder);
  return 0;
}
