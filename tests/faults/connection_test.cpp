// Faults at each packet of a delivery, in both directions: the connection is cut between packets or inside a packet,
// the process is killed, or the server ends the session or cancels the statement.

#include <chrono>

#include <doctest/doctest.h>

#include "faults/exchange.hpp"
#include "support/capabilities.hpp"
#include "support/long_run.hpp"

namespace txinbox::test {
namespace {

/// How close together the points of the faults are. In a long run they can be closer.
struct Grains {
  Grain usual;
  Grain if_long;
};

template <class Try>
void at_every_point(From from, Grains grains, const Try& try_one) {
  const FaultDatabase db;
  { Service(subjects().front(), db.url()).warm_up(); }
  FaultProxy proxy(db.url(), on_mysql());
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.name);
    Exchange exchange(db, proxy, subject, from);
    const auto points = exchange.points(long_run() ? grains.if_long : grains.usual);
    REQUIRE(points.size() > 4);
    for (const FaultPoint& each : points) try_one(db, proxy, exchange, each);
  }
  db.check_nothing_open();
}

}  // namespace

TEST_CASE("a connection cut after any number of packets loses and doubles nothing" * doctest::skip(!has_server())) {
  at_every_point(From::delivering, {Grain::packet, Grain::half_packet},
                 [](const FaultDatabase&, FaultProxy&, Exchange& exchange, const FaultPoint& point) {
                   exchange.try_fault("connection cut", point, Fault::cut);
                 });
}

// The row of a lost commit is too old when the delivery runs again. It is still this delivery's own row.
TEST_CASE("a connection cut after any number of packets doubles nothing within a delivery, however short valid_for is" *
          doctest::skip(!has_server())) {
  const FaultDatabase db;
  FaultProxy proxy(db.url(), on_mysql());
  for (const Subject& subject : subjects()) {
    if (!subject.pooled || subject.leased) continue;  // the service would have to make its connection anew
    CAPTURE(subject.name);
    Exchange exchange(db, proxy, subject, From::delivering, std::chrono::milliseconds(1));
    for (const FaultPoint& each : exchange.points(Grain::packet)) {
      exchange.try_one_delivery("connection cut, with a valid_for that ends at once", each, Fault::cut);
    }
  }
}

TEST_CASE("a connection cut while it is made loses and doubles nothing" * doctest::skip(!has_server())) {
  at_every_point(From::connecting, {Grain::turn, Grain::packet},
                 [](const FaultDatabase&, FaultProxy&, Exchange& exchange, const FaultPoint& point) {
                   exchange.try_fault("connection cut, from its first byte on", point, Fault::cut);
                 });
}

TEST_CASE("a process killed at any packet loses and doubles nothing" * doctest::skip(!has_server())) {
  at_every_point(From::delivering, {Grain::packet, Grain::half_packet},
                 [](const FaultDatabase&, FaultProxy&, Exchange& exchange, const FaultPoint& point) {
                   exchange.try_kill("process killed", point);
                 });
}

TEST_CASE("a session ended by the server at any packet loses and doubles nothing" * doctest::skip(!has_server())) {
  at_every_point(From::delivering, {Grain::turn, Grain::packet},
                 [](const FaultDatabase& db, FaultProxy& proxy, Exchange& exchange, const FaultPoint& point) {
                   exchange.try_fault("session ended by the server", point, Fault::run,
                                      [&] { return db.end_session(proxy.newest_port()); });
                 });
}

TEST_CASE("a statement cancelled by the server at any packet loses and doubles nothing" *
          doctest::skip(!has_server())) {
  at_every_point(From::delivering, {Grain::turn, Grain::packet},
                 [](const FaultDatabase& db, FaultProxy& proxy, Exchange& exchange, const FaultPoint& point) {
                   exchange.try_fault("statement cancelled by the server", point, Fault::run,
                                      [&] { return db.cancel_statement(proxy.newest_port()); });
                 });
}

}  // namespace txinbox::test
