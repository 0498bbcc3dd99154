// Publishing parked messages again from their stored payloads.

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/outbox_messages.hpp>
#include <txinbox/redrive.hpp>
#include <txinbox/txinbox.hpp>

#include "support/recording_publisher.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

struct Parked {
  TestDatabase db;
  Pool pool = db.pool(2);

  void park(const std::string& key, const std::string& payload, const std::string& consumer = "svc") {
    const Message message{.business_key = key, .payload = payload};
    CHECK(TxConsumer(pool, consumer, {.max_attempts = 1})
              .consume(message, [](soci::session&, Delivery&) { throw std::runtime_error("bad"); })
              .outcome == Outcome::parked);
  }

  Outcome deliver(const std::string& key) {
    return TxConsumer(pool, "svc").consume({.business_key = key}, [](soci::session&, Delivery&) {}).outcome;
  }

  std::size_t redrive(const FailedFilter& filter = {}, const std::optional<OperatorAction>& by = {}) {
    return redrive_stored(pool.acquire(), "orders", filter, by);
  }

  std::vector<OutboxMessageInfo> outbox() { return list_outbox(pool.acquire(), {.payloads = true}); }
};

TEST_CASE("the stored payloads of parked messages are added to the outbox, and the messages can run again") {
  Parked parked;
  const std::string bytes("\x00\xff'\"\\{}", 7);
  parked.park("a", bytes);
  parked.park("b", "");
  parked.park("c", "c");
  CHECK(parked.redrive({.state = FailedState::failing}) == 0);
  CHECK(parked.outbox().empty());
  CHECK(parked.deliver("a") == Outcome::parked);
  const FailedCount before = count_failed(parked.pool.acquire(), {.state = FailedState::parked});
  CHECK(before.messages == 3);
  CHECK(before.with_payload == 2);

  CHECK(parked.redrive({}, OperatorAction{"ann", "repaired"}) == 2);
  const auto messages = parked.outbox();
  REQUIRE(messages.size() == 2);
  for (const OutboxMessageInfo& each : messages) {
    CHECK(each.topic == "orders");
    CHECK(each.payload == (each.key == "a" ? bytes : "c"));
    CHECK(each.type.empty());
  }
  CHECK(messages[0].id != messages[1].id);
  CHECK(list_audit(parked.pool.acquire(), {.action = "redrive_stored"}).size() == 2);
  CHECK(parked.redrive() == 0);
  CHECK(parked.outbox().size() == 2);
  CHECK(parked.deliver("a") == Outcome::consumed);
  CHECK(parked.deliver("b") == Outcome::parked);

  RecordingPublisher broker;
  const OutboxRelay relay(parked.pool, broker.publisher(), {.poll = 5ms});
  CHECK(broker.confirmed(2).size() == 2);
}

TEST_CASE("the options select which stored payloads are published") {
  Parked parked;
  for (const char* key : {"a", "b", "c"}) parked.park(key, "p");
  parked.park("a", "p", "other");
  CHECK(parked.redrive({.consumer = "svc", .business_key = "b"}) == 1);
  CHECK(parked.redrive({.error_class = "another"}) == 0);
  CHECK(parked.redrive({.consumer = "svc", .limit = 1}) == 1);
  CHECK(parked.redrive({.consumer = "other", .state = FailedState::parked, .error_class = "std::runtime_error"}) == 1);
  CHECK(parked.redrive() == 1);
  CHECK(parked.outbox().size() == 4);
}

TEST_CASE("what cannot be added to the outbox stays parked") {
  Parked parked;
  parked.park("a", "p");
  CHECK(thrown_by([&] { (void)redrive_stored(parked.pool.acquire(), ""); }) == "invalid_message");
  CHECK(thrown_by([&] { (void)redrive_stored(parked.pool.acquire(), std::string(256, 't')); }) == "invalid_message");
  parked.db.run("drop table txinbox_outbox_message");
  CHECK_THROWS((void)parked.redrive());
  CHECK(parked.deliver("a") == Outcome::parked);
}

}  // namespace
}  // namespace txinbox::test
