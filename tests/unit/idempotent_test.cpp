// How `idempotent` calls a consumer. The consumers of this test only record the message.

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/idempotent.hpp>
#include <txinbox/json.hpp>

using namespace txinbox;

namespace {

struct Purchase {
  std::string no;
  std::int64_t id = 0;
  std::string body = {};
  std::string_view tail() const { return std::string_view(no).substr(1); }
};

struct Session {};
struct Arrival {};

/// Takes handlers as a `TxConsumer` does.
struct Consumer {
  using Handler = std::function<void(Session&, Arrival&)>;
  Result consume(const Message& message, const Handler& handler) {
    seen.push_back(message);
    Session session;
    Arrival arrival;
    handler(session, arrival);
    return {.outcome = Outcome::consumed, .stored = message.business_key};
  }
  std::vector<Message> seen;
};

/// Takes handlers as a `LeaseConsumer` does.
struct FakeLease {
  int fence;
};
struct LeasedConsumer {
  using Handler = std::function<void(FakeLease&)>;
  Result consume(const Message& message, const Handler& handler) {
    FakeLease lease{7};
    handler(lease);
    return {.outcome = Outcome::consumed, .stored = message.business_key + std::to_string(lease.fence)};
  }
};

/// The key that `key_of` gives to an order.
template <class KeyOf>
std::string key_by(KeyOf key_of) {
  Consumer consumer;
  const auto handle = idempotent(consumer, key_of, [](Session&, const Purchase&) {});
  (void)handle(Purchase{.no = "A-1", .id = -42, .body = R"({"no":"J-1"})"});
  return consumer.seen.at(0).business_key;
}

std::string free_function(const Purchase& order) { return order.no; }

}  // namespace

TEST_CASE("the key is what a member, a member function or a function says, text or integer") {
  CHECK(key_by(&Purchase::no) == "A-1");
  CHECK(key_by(&Purchase::id) == "-42");
  CHECK(key_by(&Purchase::tail) == "-1");
  CHECK(key_by(free_function) == "A-1");
  CHECK(key_by([](const Purchase&) { return "fixed"; }) == "fixed");
  CHECK(key_by([](const Purchase&) { return std::uint64_t{18446744073709551615U}; }) == "18446744073709551615");
  CHECK(key_by(JsonTemplate("order:{/no}").of(&Purchase::body)) == "order:J-1");
}

TEST_CASE("the prefix comes before every kind of key") {
  CHECK(key_by(prefixed("order:", &Purchase::no)) == "order:A-1");
  CHECK(key_by(prefixed("order:", &Purchase::id)) == "order:-42");
  CHECK(key_by(prefixed("eu:", prefixed("order:", free_function))) == "eu:order:A-1");
}

TEST_CASE("a message that is JSON text itself needs a template alone") {
  Consumer consumer;
  std::string seen;
  const auto handle =
      idempotent(consumer, JsonTemplate("/no"), [&](Session&, const std::string& body) { seen = body; });
  (void)handle(std::string(R"({"no":1.50})"));
  CHECK(consumer.seen.at(0).business_key == "1.50");
  CHECK(seen == R"({"no":1.50})");
}

TEST_CASE("a function may return the whole message: key, id and content") {
  Consumer consumer;
  const auto message_of = [](const Purchase& order) {
    return Message{.business_key = order.no, .message_id = "m-1", .content = order.body};
  };
  (void)idempotent(consumer, message_of, [](Session&, const Purchase&) {})(Purchase{.no = "A-1", .body = "b"});
  REQUIRE(consumer.seen.size() == 1);
  CHECK(consumer.seen[0].business_key == "A-1");
  CHECK(consumer.seen[0].message_id == "m-1");
  CHECK(consumer.seen[0].content == "b");
}

TEST_CASE("a handler is called once with the message itself, and with as much of the consumer's as it takes") {
  Consumer consumer;
  const Purchase order{.no = "A-1"};
  std::vector<const Purchase*> seen;
  const auto short_one = idempotent(consumer, &Purchase::no, [&](Session&, const Purchase& o) { seen.push_back(&o); });
  const auto long_one =
      idempotent(consumer, &Purchase::no, [&](Session&, Arrival&, const Purchase& o) { seen.push_back(&o); });
  CHECK(short_one(order).stored == "A-1");
  CHECK(long_one(order).stored == "A-1");
  CHECK(seen == std::vector<const Purchase*>{&order, &order});
}

TEST_CASE("a handler of leased work is called with the lease") {
  LeasedConsumer consumer;
  int fence = 0;
  const auto handle =
      idempotent(consumer, &Purchase::no, [&](FakeLease& lease, const Purchase&) { fence = lease.fence++; });
  CHECK(handle(Purchase{.no = "A-1"}).stored == "A-18");
  CHECK(fence == 7);
}

TEST_CASE("what the key's function or the handler throws passes through") {
  Consumer consumer;
  bool ran = false;
  const auto keyless = idempotent(
      consumer, [](const Purchase&) -> std::string { throw std::out_of_range("no key"); },
      [&](Session&, const Purchase&) { ran = true; });
  CHECK_THROWS_AS((void)keyless(Purchase{}), std::out_of_range);
  CHECK(consumer.seen.empty());
  CHECK_FALSE(ran);
  const auto failing =
      idempotent(consumer, &Purchase::no, [](Session&, const Purchase&) { throw std::logic_error("no"); });
  CHECK_THROWS_AS((void)failing(Purchase{}), std::logic_error);
}

TEST_CASE("the wrapped handler is a function object like another: copied, or with a handler that cannot be") {
  Consumer consumer;
  int runs = 0;
  std::function<Result(const Purchase&)> copied;
  {
    const auto handle = idempotent(consumer, &Purchase::no, [&runs](Session&, const Purchase&) { ++runs; });
    copied = handle;
  }
  CHECK(copied(Purchase{.no = "A-1"}).outcome == Outcome::consumed);
  const auto owning = idempotent(consumer, &Purchase::no,
                                 [own = std::make_unique<int*>(&runs)](Session&, const Purchase&) { ++**own; });
  CHECK(owning(Purchase{.no = "A-2"}).outcome == Outcome::consumed);
  CHECK(runs == 2);
}
