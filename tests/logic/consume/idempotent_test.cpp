// A service's own handlers, wrapped by `idempotent`.

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/inspect.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

struct Payment {
  std::string no;
  std::string account = "A";
  long long cents = 100;
  std::string broker_id = "m-1";
};

/// A handler of a service that does not use txinbox.
void book(soci::session& sql, const Payment& payment) {
  sql << "insert into effect values (:no)", soci::use(payment.no);
}

Message message_of(const Payment& payment) {
  return {.business_key = payment.no,
          .message_id = payment.broker_id,
          .content = content_of({payment.account, std::to_string(payment.cents)})};
}

struct Service {
  EffectDatabase db;
  Pool pool = db.pool();
  TxConsumer consumer{pool, "payments"};
};

TEST_CASE("a plain handler becomes idempotent in one line") {
  Service t;
  const auto on_payment = idempotent(t.consumer, &Payment::no, book);
  CHECK(on_payment(Payment{"p1"}).outcome == consumed);
  CHECK(on_payment(Payment{"p1"}).outcome == duplicate);
  CHECK(on_payment(Payment{"p2"}).outcome == consumed);
  CHECK(t.db.effects_of("p1") == 1);
  CHECK(t.db.effects() == 2);
}

TEST_CASE("prefixes keep the keys of two kinds of messages apart") {
  Service t;
  const auto on_payment = idempotent(t.consumer, prefixed("payment:", &Payment::no), book);
  const auto on_refund = idempotent(t.consumer, prefixed("refund:", &Payment::no), book);
  CHECK(on_payment(Payment{"p1"}).outcome == consumed);
  CHECK(on_refund(Payment{"p1"}).outcome == consumed);
  CHECK(on_refund(Payment{"p1"}).outcome == duplicate);
  CHECK(t.db.effects_of("p1") == 2);
}

TEST_CASE("the messages of a wrapped handler have an id, and their content is compared") {
  Service t;
  const auto on_payment = idempotent(t.consumer, message_of, book);
  CHECK(on_payment(Payment{"p1", "A", 123}).outcome == consumed);
  CHECK(on_payment(Payment{"p1", "A", 123, "m-2"}).outcome == duplicate);
  CHECK(on_payment(Payment{"p1", "A1", 23}).outcome == conflict);
  const auto row = find_message(t.pool.acquire(), "payments", "p1");
  REQUIRE(row);
  CHECK(row->message_id == "m-1");
  CHECK(t.db.effects() == 1);
}

TEST_CASE("a wrapped handler that takes the delivery can store a result for duplicates") {
  Service t;
  const auto on_payment = idempotent(t.consumer, &Payment::no, [](soci::session& sql, Delivery& d, const Payment& p) {
    book(sql, p);
    d.store("booked " + std::to_string(p.cents));
  });
  CHECK(on_payment(Payment{"p1"}).stored == "booked 100");
  CHECK(on_payment(Payment{"p1"}).stored == "booked 100");
}

TEST_CASE("a key and a content can be made from the values in a JSON message") {
  Service t;
  const JsonTemplate key("payment:{/no}");
  const JsonContent content({"/cents", "/account"});
  const auto on_line = idempotent(
      t.consumer, [&](const std::string& line) { return Message{.business_key = key(line), .content = content(line)}; },
      [](soci::session& sql, const std::string&) { sql << "insert into effect values ('x')"; });
  CHECK(on_line(std::string(R"({"no":1,"cents":100,"account":"A"})")).outcome == consumed);
  CHECK(on_line(std::string(R"({"no":1, "account":"A", "cents":100, "at":"later"})")).outcome == duplicate);
  CHECK(on_line(std::string(R"({"no":1,"cents":1000,"account":"A"})")).outcome == conflict);
  CHECK(thrown_by([&] { (void)on_line(std::string(R"({"cents":100})")); }) == "invalid_key");
  CHECK(t.db.effects() == 1);
  CHECK(t.db.claims() == 1);
}

TEST_CASE("a message without a valid key sends no statement") {
  Service t;
  const auto keyless = idempotent(
      t.consumer, [](const Payment&) -> std::string { throw std::out_of_range("no key"); }, book);
  CHECK_THROWS_AS((void)keyless(Payment{"p1"}), std::out_of_range);
  const auto on_payment = idempotent(t.consumer, &Payment::no, book);
  CHECK(thrown_by([&] { (void)on_payment(Payment{""}); }) == "invalid_key");
  CHECK(t.db.claims() == 0);
  CHECK(t.db.effects() == 0);
}

TEST_CASE("a wrapped handler that throws leaves no rows, and its message runs again") {
  Service t;
  bool fails = true;
  const auto on_payment = idempotent(t.consumer, &Payment::no, [&](soci::session& sql, const Payment& payment) {
    book(sql, payment);
    if (fails) throw std::runtime_error("no");
  });
  CHECK_THROWS_AS((void)on_payment(Payment{"p1"}), std::runtime_error);
  CHECK(t.db.effects() == 0);
  fails = false;
  CHECK(on_payment(Payment{"p1"}).outcome == consumed);
  CHECK(t.db.effects() == 1);
}

TEST_CASE("many threads can call one wrapped handler") {
  Service t;
  const auto on_payment = idempotent(t.consumer, &Payment::no, book);
  std::atomic<int> ran = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) ran += on_payment(Payment{"p" + std::to_string(i)}).outcome == consumed ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ran == 10);
  CHECK(t.db.effects() == 10);
}

}  // namespace
}  // namespace txinbox::test
