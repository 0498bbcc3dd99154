// Erasing messages.

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/inspect.hpp>
#include <txinbox/operations.hpp>
#include <txinbox/txinbox.hpp>

#include "message/erased_key.hpp"
#include "support/sql_time.hpp"
#include "support/test_database.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const OperatorAction ann{.actor = "ann", .reason = "request 17"};
const EraseOptions at_once{.no_consumer_runs = true};
const std::string key = "ann@example.org";

struct Inbox {
  TestDatabase db;
  Pool pool = db.pool(2);

  /// A consumer object that has read no erased keys yet.
  TxConsumer consumer(ConsumerOptions options = {}) { return {pool, "svc", std::move(options)}; }

  Result deliver(const Message& message) {
    return consumer().consume(message, [](soci::session&, Delivery& delivery) { delivery.store("for " + key); });
  }

  void fail(const Message& message, ConsumerOptions options = {}) {
    try {
      options.keep_error_text = true;
      (void)consumer(options).consume(message,
                                      [](soci::session&, Delivery&) { throw std::runtime_error("bad " + key); });
    } catch (const std::runtime_error&) {
    }
  }

  EraseOutcome erase_key() { return erase(pool.acquire(), "svc", std::vector{key}, ann, at_once).at(0); }

  /// It waits if it erases something.
  EraseOutcome erase_key_of_running_consumers() { return erase(pool.acquire(), "svc", std::vector{key}, ann).at(0); }

  /// In how many rows of the inbox's tables the key or the address is found.
  long long traces() const {
    long long rows = 0;
    for (const char* table :
         {"txinbox_consumed_message", "txinbox_failed_message", "txinbox_conflicting_message", "txinbox_audit"}) {
      rows += db.number(std::string("select count(*) from ") + table + " where business_key = '" + key + "'");
    }
    return rows + db.number(
                      "select count(*) from txinbox_consumed_message where message_id is not null or "
                      "content_hash is not null or result is not null");
  }

  std::string state() {
    const auto found = find_message(pool.acquire(), "svc", detail::erased_key("svc", key));
    return found ? found->state : "";
  }
};

TEST_CASE("sql_select_limit hides no erased key" * doctest::skip(!on_mysql())) {
  Inbox inbox;
  const std::vector<std::string> keys{"a", "b", "c"};
  for (const std::string& each : keys) CHECK(inbox.deliver({.business_key = each}).outcome == Outcome::consumed);
  (void)erase(inbox.pool.acquire(), "svc", keys, ann, at_once);
  const auto sql = inbox.db.session();
  *sql << "set sql_select_limit = 1";
  TxConsumer consumer(*sql, "svc");
  for (const std::string& each : keys) {
    CHECK(consumer.consume({.business_key = each}, [](soci::session&, Delivery&) {}).outcome ==
          Outcome::already_consumed);
  }
}

TEST_CASE("an erased message that was consumed leaves only a hash, and does not run again") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key, .message_id = "id of ann", .content = "c"}).outcome == Outcome::consumed);
  CHECK(inbox.deliver({.business_key = key, .content = "another"}).outcome == Outcome::conflict);
  CHECK(inbox.deliver({.business_key = "another"}).outcome == Outcome::consumed);
  CHECK(forget(inbox.pool.acquire(), "svc", "another", ann));
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.state() == "consumed");
  for (const char* content : {"c", "another", ""}) {
    const Result again = inbox.deliver({.business_key = key, .content = content});
    CHECK(again.outcome == Outcome::already_consumed);
    CHECK_FALSE(again.stored);
    CHECK(again.age.has_value());
  }
  CHECK(inbox.traces() == 0);
  CHECK(inbox.deliver({.business_key = "another"}).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);

  const auto audit = list_audit(inbox.pool.acquire(), {.action = "erase"});
  REQUIRE(audit.size() == 1);
  CHECK(audit[0].actor == "ann");
  CHECK(audit[0].business_key == detail::erased_key("svc", key));
}

TEST_CASE("an erased message that was not consumed is discarded") {
  Inbox inbox;
  SUBCASE("it was parked") { inbox.fail({.business_key = key, .payload = key}, {.max_attempts = 1}); }
  SUBCASE("it was failing") { inbox.fail({.business_key = key, .payload = key}); }
  SUBCASE("it was discarded") {
    inbox.fail({.business_key = key, .payload = key});
    CHECK(discard_failed(inbox.pool.acquire(), {.consumer = "svc"}, ann) == 1);
  }
  SUBCASE("a lease on it has ended") {
    LeaseConsumer consumer(inbox.pool, "svc");
    CHECK_THROWS_AS(
        (void)consumer.consume({.business_key = key}, [](Lease&) { throw std::runtime_error("bad " + key); }),
        std::runtime_error);
  }
  CHECK(inbox.traces() > 0);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.state() == "discarded");
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::discarded);
  CHECK(list_failed(inbox.pool.acquire(), {.consumer = "svc", .state = FailedState::discarded}).empty());
}

TEST_CASE("a message of a batch or of a LeaseConsumer that was erased does not run") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  std::vector<std::string> ran;
  const std::vector<Message> batch{{.business_key = "a"}, {.business_key = key}, {.business_key = "b"}};
  const auto check_batch = [&](auto&& results) {
    REQUIRE(results.size() == 3);
    CHECK(results[0].outcome == Outcome::consumed);
    CHECK(results[1].outcome == Outcome::already_consumed);
    CHECK(results[2].outcome == Outcome::consumed);
  };
  SUBCASE("a handler for each") {
    auto consumer = inbox.consumer();
    check_batch(consumer.consume_batch(
        batch, [&](soci::session&, Delivery& delivery) { ran.push_back(delivery.message().business_key); }));
    CHECK(ran == std::vector<std::string>{"a", "b"});
  }
  SUBCASE("with savepoints") {
    auto consumer = inbox.consumer();
    bool failed = false;
    check_batch(consumer.consume_batch(batch, [&](soci::session&, Delivery& delivery) {
      if (!std::exchange(failed, true)) delivery.refuse("no");
      ran.push_back(delivery.message().business_key);
    }));
  }
  SUBCASE("a lease") {
    LeaseConsumer consumer(inbox.pool, "svc");
    const auto result = consumer.consume({.business_key = key}, [&](Lease&) { ran.emplace_back("lease"); });
    CHECK(result.outcome == Outcome::already_consumed);
    CHECK(ran.empty());
  }
  CHECK(inbox.traces() == 0);
}

TEST_CASE("what cannot be erased is left as it is") {
  Inbox inbox;
  CHECK(inbox.erase_key() == EraseOutcome::not_found);
  SUBCASE("a torn message") {
    inbox.fail({.business_key = key, .payload = key}, {.max_attempts = 1});
    inbox.db.run("update txinbox_consumed_message set state = 'torn'");
    CHECK(inbox.erase_key() == EraseOutcome::torn);
    CHECK(inbox.traces() == 2);
  }
  SUBCASE("a message with a lease") {
    LeaseConsumer consumer(inbox.pool, "svc");
    CHECK(consumer.consume({.business_key = key}, [&](Lease&) { CHECK(inbox.erase_key() == EraseOutcome::running); })
              .outcome == Outcome::consumed);
  }
  SUBCASE("a message whose process has crashed") {
    inbox.fail({.business_key = key, .payload = key});
    inbox.db.run("update txinbox_failed_message set running_token = " +
                 std::string(on_postgresql() ? "gen_random_uuid()" : "x'00112233445566778899aabbccddeeff'"));
    CHECK(inbox.erase_key_of_running_consumers() == EraseOutcome::running);
    CHECK(inbox.traces() > 0);
    CHECK(inbox.erase_key() == EraseOutcome::erased);  // no process consumes, so it has crashed
    CHECK(inbox.traces() == 0);
    CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::discarded);
  }
  CHECK(list_audit(inbox.pool.acquire(), {.action = "erase"}).size() <= 1);
}

TEST_CASE("one consumer's erased key means nothing to another one") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  TxConsumer other(inbox.pool, "other");
  const auto nothing = [](soci::session&, Delivery&) {};
  CHECK(other.consume({.business_key = key}, nothing).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(find_message(inbox.pool.acquire(), "other", key).has_value());
  CHECK(detail::erased_key("svc", key) != detail::erased_key("other", key));
  CHECK(detail::erased_key("a", "bc") != detail::erased_key("ab", "c"));
}

TEST_CASE("the row of an erased message is purged as others, and a key with valid_for can come again") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  inbox.db.run("update txinbox_consumed_message set consumed_at = " + sql_time(-2h));
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::already_consumed);
  SUBCASE("purge") { CHECK(purge(inbox.pool.acquire(), 1h) == 1); }
  SUBCASE("valid_for") {
    CHECK(inbox.deliver({.business_key = key, .valid_for = 3h}).outcome == Outcome::already_consumed);
    CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::consumed);
    return;
  }
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
}

TEST_CASE("a key with valid_for that was erased, claimed again and erased again does not run again") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  inbox.db.run("update txinbox_consumed_message set consumed_at = " + sql_time(-2h));
  CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::already_consumed);
}

TEST_CASE("what is left of a message without a row is erased, too") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key, .content = "c"}).outcome == Outcome::consumed);
  CHECK(inbox.deliver({.business_key = key, .content = "d"}).outcome == Outcome::conflict);
  CHECK(forget(inbox.pool.acquire(), "svc", key, ann));
  CHECK(inbox.traces() == 2);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.erase_key() == EraseOutcome::not_found);
  CHECK(inbox.deliver({.business_key = key, .content = "d"}).outcome == Outcome::consumed);
}

TEST_CASE("a message cannot have the key of an erased message") {
  Inbox inbox;
  const std::string erased = detail::erased_key("svc", key);
  CHECK(thrown_by([&] { (void)inbox.deliver({.business_key = erased}); }) == "invalid_key");
  CHECK(thrown_by([&] { (void)erase(inbox.pool.acquire(), "svc", std::vector{erased}, ann, at_once); }) ==
        "invalid_key");
}

TEST_CASE("an erasure that is stopped in its wait is completed by the next call") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key, .message_id = "id"}).outcome == Outcome::consumed);
  std::stop_source stop;
  stop.request_stop();
  CHECK(thrown_by([&] {
          (void)erase(inbox.pool.acquire(), "svc", std::vector{key}, ann, {.stop = stop.get_token()});
        }) == "stopped");
  CHECK(inbox.traces() == 1);  // the key's row, so that no consumer can claim it
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::already_consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::already_consumed);
}

TEST_CASE("erase refuses bad arguments before it changes anything") {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  const auto erase_as = [&](const std::vector<std::string>& keys, const OperatorAction& by) {
    return thrown_by([&] { (void)erase(inbox.pool.acquire(), "svc", keys, by, at_once); });
  };
  CHECK(erase_as({key, ""}, ann) == "invalid_key");
  CHECK(erase_as({key}, {}) == "invalid_argument");
  CHECK(inbox.traces() > 0);
  CHECK(erase_as({}, ann) == "nothing");
}

// Another consumer object has read that there is no erased key. The row of the key keeps it from running the message
// until it reads again.
TEST_CASE("no process runs a message that is erased at the same time" * doctest::test_suite("timed")) {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  std::jthread eraser([&] { (void)erase(inbox.pool.acquire(), "svc", std::vector{key}, ann); });
  auto consumer = inbox.consumer();
  const auto end = std::chrono::steady_clock::now() + 45s;
  int deliveries = 0;
  while (std::chrono::steady_clock::now() < end) {
    ++deliveries;
    const auto result =
        consumer.consume({.business_key = key}, [](soci::session&, Delivery&) { FAIL("it ran again"); });
    REQUIRE(result.outcome == Outcome::already_consumed);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(deliveries > 100);
  CHECK(inbox.traces() == 0);
}

TEST_CASE("a row that a delivery has claimed during an erasure is not removed" * doctest::test_suite("timed")) {
  Inbox inbox;
  CHECK(inbox.deliver({.business_key = key}).outcome == Outcome::consumed);
  auto erasing = std::async(std::launch::async, [&] { return inbox.erase_key_of_running_consumers(); });
  while (inbox.state().empty()) std::this_thread::sleep_for(5ms);
  inbox.db.run("update txinbox_consumed_message set consumed_at = " + sql_time(-2h));
  CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::consumed);
  CHECK(erasing.get() == EraseOutcome::running);
  CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::already_consumed);
  CHECK(inbox.erase_key() == EraseOutcome::erased);
  CHECK(inbox.traces() == 0);
  CHECK(inbox.deliver({.business_key = key, .valid_for = 1h}).outcome == Outcome::already_consumed);
}

}  // namespace
}  // namespace txinbox::test
