// The sources of this process on the operators' page.

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <txinbox/source.hpp>

#include "page/sources.hpp"
#include "page_kit.hpp"
#include "support/eventually.hpp"
#include "support/memory_broker.hpp"
#include "support/run_kit.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using http::Sources;
using Time = Sources::Clock::time_point;

/// The reports of one `run`, at times that the test chooses.
struct Reports {
  Sources sources;
  Time now = Sources::Clock::now();
  std::string source = "kafka orders";

  void add(RunEvent event) {
    event.source = source;
    event.consumer = "svc";
    sources.add(event, now);
  }
  void status(std::optional<std::uint64_t> lag) {
    const SourceStatus status{.name = source, .connected = true, .lag = lag, .lanes = 3, .reconnects = 2};
    add({.type = RunEventType::status, .status = &status});
  }
  nlohmann::json row() {
    const auto rows = sources.read(now);
    REQUIRE(rows.size() == 1);
    return nlohmann::json(rows[0]);
  }
  std::string state() { return row()["state"]; }
};

TEST_CASE("the page shows what run reports about its source, also after the run has ended") {
  PageKit t;
  CHECK(t.json("/")["sources"].empty());
  CHECK(t.get("/").body.find("Sources of this process") == std::string::npos);
  MemoryBroker broker;
  for (const char* key : {"a", "b"}) broker.publish(key);
  MemorySource source(broker);
  TxConsumer consumer(t.pool, "svc", {.listeners = {t.page.listener()}});
  RunOptions options = until_idle();
  options.status_interval = 1ms;
  (void)run(source, consumer, body_is_key, add_effect, options);
  const auto rows = t.json("/")["sources"];
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["source"] == source.status().name);
  CHECK(rows[0]["consumer"] == "svc");
  CHECK(rows[0]["connected"] == true);
  CHECK(rows[0]["lag"] == 0);
  CHECK(rows[0]["state"] == "running");
  CHECK(rows[0]["status_age_seconds"].is_number());
  CHECK(t.get("/").body.find("Sources of this process") != std::string::npos);
}

TEST_CASE("the listener may outlive the page") {
  std::shared_ptr<Listener> listener;
  {
    const PageKit t;
    listener = t.page.listener();
    CHECK(listener == t.page.listener());
  }
  listener->on_run_event({.type = RunEventType::paused, .source = "s", .consumer = "c"});
}

TEST_CASE("a status of a source on the page has its age, and a lag that is not known is null") {
  Reports t;
  t.add({.type = RunEventType::held});
  CHECK(t.row()["lag"].is_null());
  CHECK(t.row()["status_age_seconds"].is_null());
  CHECK(t.row()["connected"].is_null());
  t.status(7);
  CHECK(t.row()["lag"] == 7);
  CHECK(t.row()["lanes"] == 3);
  CHECK(t.row()["reconnects"] == 2);
  CHECK(t.row()["held"] == 1);
  t.now += 12s;
  CHECK(t.row()["status_age_seconds"] == 12);
  const SourceEvent lost{.type = SourceEventType::disconnected};
  t.add({.type = RunEventType::source, .source_event = &lost});
  CHECK(t.row()["connected"] == false);
  t.status({});
  CHECK(t.row()["lag"].is_null());
  CHECK(t.row()["connected"] == true);
}

TEST_CASE("the state of a source on the page") {
  Reports t;
  t.status(0);
  CHECK(t.state() == "running");
  t.add({.type = RunEventType::tripped, .error_class = "std::runtime_error"});
  CHECK(t.state() == "tripped");
  CHECK(t.row()["error_class"] == "std::runtime_error");
  CHECK(t.row()["since"].get<std::string>().size() > 10);
  t.add({.type = RunEventType::resumed});
  CHECK(t.state() == "running");
  CHECK(t.row()["error_class"] == "");
  t.add({.type = RunEventType::paused});
  CHECK(t.state() == "paused");
  t.add({.type = RunEventType::unpaused});
  CHECK(t.state() == "running");

  t.add({.type = RunEventType::unavailable, .error_class = "connection_lost", .backoff = 5s});
  CHECK(t.state() == "unavailable");
  const std::string since = t.row()["since"];
  t.add({.type = RunEventType::acknowledged, .count = 1});  // it was consumed before
  CHECK(t.state() == "unavailable");
  t.now += 6s;
  t.add({.type = RunEventType::unavailable, .error_class = "read_only", .backoff = 5s});
  CHECK(t.row()["error_class"] == "read_only");
  CHECK(t.row()["since"] == since);
  t.now += 6s;
  CHECK(t.state() == "unavailable");  // a try can take seconds
  t.add({.type = RunEventType::acknowledged, .count = 1});
  CHECK(t.state() == "running");
  t.add({.type = RunEventType::unavailable, .error_class = "read_only", .backoff = 5s});
  t.now += 16s;
  CHECK(t.state() == "running");
}

TEST_CASE("a source that reports nothing for a long time is silent on the page") {
  Reports t;
  t.add({.type = RunEventType::tripped});
  t.now += 61s;
  CHECK(t.state() == "silent");
  t.status(1);
  CHECK(t.state() == "tripped");
  t.now += 5min;  // its status interval
  t.status(1);
  t.now += 14min;
  CHECK(t.state() == "tripped");
  t.now += 2min;
  CHECK(t.state() == "silent");
  t.now += 24h;
  CHECK(t.state() == "silent");
}

TEST_CASE("each run has a row on the page, until the same run on another thread has replaced it for an hour") {
  Reports t;
  std::thread([&] { t.status(1); }).join();
  const auto other = [&] { t.status(2); };
  t.now += 50min;
  other();
  CHECK(t.sources.read(t.now).size() == 2);
  t.now += 11min;
  other();
  CHECK(t.row()["lag"] == 2);
}

TEST_CASE("the page remembers a thousand sources, and forgets the one that has been silent for the longest time") {
  Reports t;
  for (std::size_t i = 0; i <= Sources::most; ++i) {
    t.source = "source " + std::to_string(i);
    t.now += 1ms;
    t.status(1);
  }
  const auto rows = t.sources.read(t.now);
  CHECK(rows.size() == Sources::most);
  for (const auto& each : rows) CHECK(each["source"] != "source 0");
}

}  // namespace
}  // namespace txinbox::test
