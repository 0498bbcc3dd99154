// A heartbeat renews a lease while the handler runs, and its connection fails at each packet.

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/lease_consumer.hpp>

#include "faults/exchange.hpp"
#include "faults/fault_table.hpp"
#include "support/capabilities.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

/// A consumer with a heartbeat. Its handler waits until the heartbeat has renewed the lease. If there is a fault, the
/// handler waits for a renewal after the fault.
class Beating {
 public:
  explicit Beating(const FaultDatabase& db) : db_(db), proxy_(db.url(), on_mysql()) {
    consume([] {});  // does the work that is done once for each connection
  }

  FaultProxy& proxy() { return proxy_; }

  /// The packets of one renewal.
  std::vector<FaultPoint> points() {
    std::size_t count = 0;
    consume([&] { proxy_.count(); }, [&] { count = proxy_.passed_by_now(); });
    const auto passed = proxy_.passed();
    std::vector<FaultPoint> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back({passed[i].direction, passed[i].packet});
    return all;
  }

  /// Checks that the lease is kept, and that the handler runs once. A heartbeat that fails is repeated until the lease
  /// ends.
  void try_fault(const std::string& kind, FaultPoint point, Fault fault, const std::function<bool()>& at_fault = {}) {
    CAPTURE(to_string(point));
    consume([&] { proxy_.arm(point, fault, at_fault); }, [] {}, true);
    CHECK(proxy_.reached_by_now());
    count_case("heartbeat: " + kind, std::ranges::find(subjects(), true, &Subject::leased)->name);
  }

 private:
  void consume(
      const std::function<void()>& begin, const std::function<void()>& end = [] {}, bool meets_fault = false) {
    const Message message{.business_key = "beat " + std::to_string(++number_)};
    bool renewed = false;
    const Result result = consumer_.consume(message, [&](Lease& lease) {
      auto granted_until = lease.expires_at();
      begin();
      while (!renewed && lease.remaining() > 0ms) {
        std::this_thread::sleep_for(1ms);
        if (meets_fault && !proxy_.reached_by_now()) {
          granted_until = lease.expires_at();
        } else {
          renewed = lease.expires_at() != granted_until;
        }
      }
      end();
      write_two_rows(*db_.session(), lease.delivery());
    });
    CHECK(renewed);
    CHECK(result.outcome == Outcome::consumed);
    CHECK(db_.rows_of(message) == Rows{1, 1});
    CHECK(db_.claim_of(message) == "consumed");
  }

  const FaultDatabase& db_;
  FaultProxy proxy_;
  Pool pool_ = open_pool(proxy_.url(), {.connections = 1, .statement_timeout = 5s});
  LeaseConsumer consumer_{pool_, consumer_name, {.length = 20s, .heartbeat = 50ms}};
  int number_ = 0;
};

}  // namespace

TEST_CASE("a heartbeat whose connection fails at any packet beats again, and the lease is kept" *
          doctest::skip(!has_server())) {
  const FaultDatabase db;
  Beating beating(db);
  const auto points = beating.points();
  REQUIRE(points.size() >= 2);
  for (const FaultPoint& each : points) {
    beating.try_fault("connection cut", each, Fault::cut);
    beating.try_fault("session ended by the server", each, Fault::run,
                      [&] { return db.end_session(beating.proxy().newest_port()); });
    beating.try_fault("statement cancelled by the server", each, Fault::run,
                      [&] { return db.cancel_statement(beating.proxy().newest_port()); });
  }
}

}  // namespace txinbox::test
