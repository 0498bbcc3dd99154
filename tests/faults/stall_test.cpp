// The connection falls silent before each packet of a delivery: nothing passes, in neither direction, and
// nothing tells the client or the server. Meanwhile the broker delivers again, to another replica.

#include <chrono>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "faults/broker.hpp"
#include "faults/fault_proxy.hpp"
#include "faults/fault_table.hpp"

namespace txinbox::test {
namespace {

/// One exchange that falls silent.
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

  /// The silent session may hold the claim: the replica waits for it in vain, or finds it committed; or it
  /// holds the lease, and is taken over. Then
  /// the network says that the connection has ended, and the rest is as ever.
  void run(FaultPoint point) {
    proxy_.arm(point, Fault::stall);
    std::vector<Action> actions;
    std::thread delivering([&] { actions = service_.deliver(broker_.messages(), write_two_rows); });
    CHECK(proxy_.reached());
    // Its own lease lasts until the case is over, however slow the machine is.
    Service replica(subject_, db_.url(), {.lease = std::chrono::minutes(5)});
    broker_.deliver(replica, write_two_rows);
    const auto end_stall = [&] {
      proxy_.end_stall();
      if (delivering.joinable()) delivering.join();
    };
    // When the lease has run out. The silent one comes back while its successor is at work, and leaves its lease.
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
    // What the silent one was told in the end must be true as well.
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

TEST_CASE("a connection that becomes silent at any step loses and doubles nothing" * doctest::skip(on_sqlite3())) {
  const FaultDatabase db;
  int number = 0;
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    const auto points = Stall(db, subject, ++number).points();
    REQUIRE(points.size() > 4);
    // Side by side: each waits for time-outs.
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
