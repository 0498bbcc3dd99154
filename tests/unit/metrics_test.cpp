#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/error.hpp>
#include <txinbox/metrics.hpp>

#include "support/prometheus_text.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const PrometheusText::Labels orders = {{"consumer", "orders"}};

PrometheusText::Labels with(PrometheusText::Labels labels, const std::string& name, const std::string& value) {
  labels[name] = value;
  return labels;
}

bool refuses(const std::string& text) {
  try {
    const PrometheusText parsed(text);
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

TEST_CASE("the tests' reader refuses what is not the format") {
  const std::string good = "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"\\\"\\\\\\n\"} 1\n";
  CHECK(PrometheusText(good).value("a_total", {{"x", "\"\\\n"}}) == 1);
  CHECK(refuses(good + good));
  CHECK(refuses(good.substr(0, good.size() - 1)));
  CHECK(refuses("a_total 1\n"));
  for (const std::string sample :
       {"a_total{x=\"\\t\"} 1", "a_total{x=\"1\",x=\"2\"} 1", "a_total{x=\"1\"", "a_total 1 ", "a_total -1", "a_total",
        "a_total 0x1", "b_total 1", "a_total 1.5", "", "a_total inf"}) {
    CAPTURE(sample);
    CHECK(refuses("# HELP a_total A.\n# TYPE a_total counter\n" + sample + "\n"));
  }
  const std::string histogram = "# HELP h H.\n# TYPE h histogram\n";
  const std::string buckets = "h_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 2\n";
  CHECK_FALSE(refuses(histogram + buckets + "h_sum 0.5\nh_count 2\n"));
  CHECK(refuses(histogram + buckets + "h_sum 0.5\nh_count 1\n"));
  CHECK(refuses(histogram + buckets + "h_count 2\n"));
  CHECK(refuses(histogram + "h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\nh_sum 0.5\nh_count 2\n"));
  CHECK(refuses(histogram + "h_bucket{le=\"1\"} 1\nh_sum 0.5\n"));
}

TEST_CASE("each delivery is counted under its consumer and outcome") {
  Metrics metrics;
  for (const EventType type : {EventType::consumed, EventType::consumed, EventType::already_consumed,
                               EventType::conflict, EventType::in_progress, EventType::parked, EventType::discarded}) {
    metrics.on_event({.type = type, .consumer = "orders"});
  }
  metrics.on_event({.type = EventType::failed, .consumer = "orders", .error_class = "transaction_lost"});
  metrics.on_event({.type = EventType::consumed, .consumer = "payments"});
  const PrometheusText text(metrics.text());
  const auto count = [&](const std::string& outcome) {
    return text.value("txinbox_messages_total", with(orders, "outcome", outcome));
  };
  CHECK(count("consumed") == 2);
  for (const char* once : {"already_consumed", "conflict", "in_progress", "parked", "discarded", "failed"}) {
    CAPTURE(once);
    CHECK(count(once) == 1);
  }
  CHECK(text.value("txinbox_messages_total", {{"consumer", "payments"}, {"outcome", "consumed"}}) == 1);
  CHECK(text.value("txinbox_messages_total", {{"consumer", "payments"}, {"outcome", "failed"}}) == 0);
  CHECK(text.value("txinbox_failures_total", with(orders, "class", "transaction_lost")) == 1);
}

TEST_CASE("retries, takeovers, torn claims and purged rows are counted, but are no deliveries") {
  Metrics metrics;
  metrics.on_event({.type = EventType::retry, .consumer = "orders", .error_class = "deadlock"});
  metrics.on_event({.type = EventType::retry, .consumer = "orders", .error_class = "deadlock"});
  metrics.on_event({.type = EventType::lease_taken_over, .consumer = "orders"});
  metrics.on_event({.type = EventType::torn, .consumer = "orders"});
  metrics.on_event({.type = EventType::purged, .consumer = "orders", .rows = 1000});
  metrics.on_event({.type = EventType::purged, .consumer = "orders", .rows = 7});
  const PrometheusText text(metrics.text());
  CHECK(text.value("txinbox_retries_total", with(orders, "class", "deadlock")) == 2);
  CHECK(text.value("txinbox_lease_takeovers_total", orders) == 1);
  CHECK(text.value("txinbox_torn_total", orders) == 1);
  CHECK(text.value("txinbox_purged_rows_total", orders) == 1007);
  CHECK(text.value("txinbox_messages_total", with(orders, "outcome", "failed")) == 0);
  CHECK(text.count("txinbox_duration_seconds_count") == 0);
}

TEST_CASE("durations and ages lie in the bucket of the next greater or equal bound") {
  Metrics metrics({.duration_buckets = {1ms, 10ms}, .age_buckets = {1s, 1min}});
  for (const auto duration : {0ns, 1'000'000ns, 1'000'001ns, 10'000'000ns, 3'000'000'000ns}) {
    metrics.on_event({.type = EventType::consumed, .consumer = "orders", .duration = duration});
  }
  for (const auto age : {-5ms, 1'000ms, 1'001ms, 90'000ms}) {
    metrics.on_event({.type = EventType::already_consumed, .consumer = "orders", .age = age});
  }
  metrics.on_event(
      {.type = EventType::already_consumed, .consumer = "orders"});  // answered from memory, so the age is unknown
  const PrometheusText text(metrics.text());
  const auto consumed = with(orders, "outcome", "consumed");
  const auto duration = [&](const char* bound) {
    return text.value("txinbox_duration_seconds_bucket", with(consumed, "le", bound));
  };
  CHECK(duration("0.001") == 2);
  CHECK(duration("0.01") == 4);
  CHECK(duration("+Inf") == 5);
  CHECK(text.value("txinbox_duration_seconds_sum", consumed) == doctest::Approx(3.012000001));
  const auto age = [&](const char* bound) {
    return text.value("txinbox_duplicate_age_seconds_bucket", with(orders, "le", bound));
  };
  CHECK(age("1") == 2);
  CHECK(age("60") == 3);
  CHECK(age("+Inf") == 4);
}

TEST_CASE("the default buckets make a valid text") {
  Metrics metrics;
  metrics.on_event({.type = EventType::already_consumed, .consumer = "orders", .duration = 3ms, .age = 36h});
  const PrometheusText text(metrics.text());
  const auto age = [&](const char* bound) {
    return text.value("txinbox_duplicate_age_seconds_bucket", with(orders, "le", bound));
  };
  CHECK(age("86400") == 0);
  CHECK(age("259200") == 1);
}

TEST_CASE("without any metrics, the text is valid") { CHECK_NOTHROW(PrometheusText(Metrics().text())); }

TEST_CASE("no name of a consumer or class can make the text invalid") {
  Metrics metrics;
  const std::string nasty = "a\"} 1\nb\\n{,}\x7f 鍵";
  metrics.on_event({.type = EventType::failed, .consumer = nasty, .error_class = nasty});
  metrics.on_event({.type = EventType::failed, .consumer = "orders", .error_class = "\xff"});
  const PrometheusText text(metrics.text());
  CHECK(text.value("txinbox_failures_total", {{"consumer", nasty}, {"class", nasty}}) == 1);
  CHECK(text.value("txinbox_failures_total", with(orders, "class", "other")) == 1);
}

TEST_CASE("no business key is in the text") {
  Metrics metrics;
  for (int type = 0; type <= static_cast<int>(EventType::purged); ++type) {
    metrics.on_event({.type = static_cast<EventType>(type), .consumer = "orders", .business_key = "very-private"});
  }
  CHECK(metrics.text().find("very-private") == std::string::npos);
}

TEST_CASE("consumers and classes beyond the limit are one, and none is lost") {
  Metrics metrics({.max_consumers = 3, .max_error_classes = 2});
  for (int i = 0; i < 10; ++i) {
    const std::string name = std::to_string(i);
    metrics.on_event({.type = EventType::failed, .consumer = name, .error_class = "x"});
    metrics.on_event({.type = EventType::failed, .consumer = "0", .error_class = name});
    metrics.on_event({.type = EventType::retry, .consumer = "0", .error_class = name});
  }
  const PrometheusText text(metrics.text());
  CHECK(text.count("txinbox_torn_total") == 4);
  CHECK(text.value("txinbox_failures_total", {{"consumer", "other"}, {"class", "x"}}) == 7);
  CHECK(text.value("txinbox_failures_total", {{"consumer", "0"}, {"class", "0"}}) == 1);
  CHECK(text.value("txinbox_failures_total", {{"consumer", "0"}, {"class", "other"}}) == 9);
  CHECK(text.value("txinbox_retries_total", {{"consumer", "0"}, {"class", "other"}}) == 8);
}

TEST_CASE("events of many threads are all counted, while others read") {
  Metrics metrics;
  constexpr int threads = 4;
  constexpr int events = 2000;
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, name = "consumer-" + std::to_string(t % 2)] {
        for (int i = 0; i < events; ++i) metrics.on_event({.type = EventType::consumed, .consumer = name});
      });
    }
    for (int i = 0; i < 20; ++i) CHECK_NOTHROW(PrometheusText(metrics.text()));
  }
  const PrometheusText text(metrics.text());
  for (const char* name : {"consumer-0", "consumer-1"}) {
    CHECK(text.value("txinbox_messages_total", {{"consumer", name}, {"outcome", "consumed"}}) == 2 * events);
  }
}

TEST_CASE("buckets that do not ascend are refused") {
  const auto refuses_buckets = [](const MetricsOptions& options) {
    try {
      const Metrics metrics(options);
      return false;
    } catch (const Error& error) {
      return error.code() == ErrorCode::invalid_argument;
    }
  };
  CHECK(refuses_buckets({.duration_buckets = {}}));
  CHECK(refuses_buckets({.duration_buckets = {1s, 1s}}));
  CHECK(refuses_buckets({.duration_buckets = {2s, 1s}}));
  CHECK(refuses_buckets({.age_buckets = {0s, 1s}}));
  CHECK_FALSE(refuses_buckets({.duration_buckets = {1s, 2s}}));
}

}  // namespace
}  // namespace txinbox::test
