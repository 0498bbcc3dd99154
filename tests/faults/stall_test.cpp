// The connection stalls before each packet of a delivery: no more packets pass in either direction, and neither the
// client nor the server gets an error. During the stall, the broker delivers the messages again, to another replica of
// the service.

#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "faults/broker.hpp"
#include "faults/fault_proxy.hpp"
#include "faults/fault_table.hpp"
#include "support/capabilities.hpp"

namespace txinbox::test {
namespace {

/// One delivery whose connection stalls.
class Stall {
 public:
  Stall(const FaultDatabase& db, const Subject& subject, int number)
      : db_(db),
        subject_(subject),
        proxy_(db.url(), on_mysql()),
        service_(subject, proxy_.url()),
        broker_(db, subject, messages_for(subject, number)) {
    service_.warm_up();
  }

  std::vector<FaultPoint> points() {
    proxy_.count();
    (void)service_.deliver(broker_.messages(), write_two_rows);
    std::vector<FaultPoint> all;
    for (const Passed& each : proxy_.passed()) {
      if (each.opens_turn) all.push_back({each.direction, each.packet});
    }
    return all;
  }

  /// If the stalled session holds the claim, the replica waits for the claim until its time-out. If the stalled session
  /// has committed, the replica finds the claim. If the stalled service holds the lease, the replica takes it over.
  /// Then the stall ends with an error of the connection, and the remaining messages are redelivered.
  void run(FaultPoint point) {
    proxy_.arm(point, Fault::stall);
    std::vector<Action> actions;
    std::thread delivering([&] { actions = service_.deliver(broker_.messages(), write_two_rows); });
    CHECK(proxy_.reached());
    // The replica's lease is so long that it does not end during the case, even on a slow machine.
    Service replica(subject_, db_.url(), {.lease = std::chrono::minutes(5)});
    broker_.deliver(replica, write_two_rows);
    const auto end_stall = [&] {
      proxy_.end_stall();
      if (delivering.joinable()) delivering.join();
    };
    // After the lease has expired, the replica takes it over. While the replica's handler runs, the stall ends. The
    // stalled service must not change the replica's lease.
    if (subject_.leased) {
      broker_.deliver(replica, [&](soci::session& sql, Delivery& delivery) {
        const std::string before = db_.lease_of(delivery.message());
        end_stall();
        CHECK(db_.lease_of(delivery.message()) == before);
        write_two_rows(sql, delivery);
      });
    }
    end_stall();
    broker_.record_results_of(service_);
    broker_.deliver_until_settled(replica);
    const bool doubled = broker_.check_promise(replica);
    // The stalled service's results must be correct, too.
    for (const Action each : actions) CHECK((each == Action::acknowledge || each == Action::redeliver));
    count_case("connection falls silent", subject_.name, doubled ? Mark::doubled : Mark::none);
  }

 private:
  const FaultDatabase& db_;
  const Subject& subject_;
  FaultProxy proxy_;
  Service service_;
  Broker broker_;
};

}  // namespace

TEST_CASE("a connection that becomes silent at any step loses and doubles nothing" * doctest::skip(!has_server())) {
  const FaultDatabase db;
  int number = 0;
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const auto points = Stall(db, subject, ++number).points();
    REQUIRE(points.size() > 4);
    // The cases run at the same time, because each of them waits for time-outs.
    std::vector<std::thread> stalls;
    for (const FaultPoint& each : points) {
      ++number;
      stalls.emplace_back([&db, &subject, each, number] { Stall(db, subject, number).run(each); });
    }
    for (std::thread& each : stalls) each.join();
  }
  db.check_nothing_open();
}

}  // namespace txinbox::test
