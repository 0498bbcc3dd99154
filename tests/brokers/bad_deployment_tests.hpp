#pragma once

// Tests of the breaker and of `txinbox redrive` that must pass on every broker. The tests of each component include
// this file and call these functions.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "brokers/command_tests.hpp"

namespace txinbox::test {

/// The words with SQL that fails for every message.
inline Command::Arguments with_bad_sql(Command::Arguments words) {
  const auto sql = std::ranges::find(words, "--sql");
  *(sql + 1) = "insert into t_order(no, sku, qty) values (:no, null, :qty)";
  return words;
}

/// The breaker trips, and the program is replaced by a repaired one. No message becomes a dead letter, and nobody has
/// to do anything else.
inline void breaker_keeps_messages(BrokerUnderTest& broker, const std::string& name) {
  const int keys = std::min(kills(3), 20) * 100;
  OrdersFromBroker t(broker, name);
  t.publish(0, keys);
  Command bad(with_bad_sql(t.arguments({"--max-attempts", "3", "--workers", "2", "--batch", "10"})), t.db.url());
  REQUIRE(bad.printed("the SQL fails for all messages"));
  bad.signal(SIGTERM);
  const Ended ended = bad.wait();
  CHECK_MESSAGE(ended.status == 4, ended.err);
  CHECK_MESSAGE(ended.last_line().find("dead letters 0,") != std::string::npos, ended.last_line());
  const auto counted = t.db.number("select coalesce(sum(attempts), 0) from txinbox_failed_message");
  CHECK(counted <= 20 + 2 * 10);
  CHECK(t.db.number("select count(*) from txinbox_consumed_message") == 0);
  const Ended repaired = t.consume_rest({"--max-attempts", "3", "--workers", "2"});
  CHECK_MESSAGE(repaired.status == 0, repaired.err);
  count(keys, "keys");
  count(t.orders(), "effects");
  count(counted, "failures counted");
  CHECK(t.orders() == keys);
  CHECK(t.taken() == keys);
}

/// A deployment whose SQL fails for every message, and which has no breaker. All messages become dead letters.
class AfterBadDeployment : public OrdersFromBroker {
 public:
  AfterBadDeployment(BrokerUnderTest& broker, const std::string& name, int keys)
      : OrdersFromBroker(broker, name), broker_(broker), name_(name) {
    publish(0, keys);
    const Command::Arguments words =
        arguments({"--idle-exit", broker.idle_exit(), "--max-attempts", "1", "--breaker", "0", "--workers", "4"});
    const Ended ended = run(with_bad_sql(words), db.url());
    CHECK_MESSAGE(ended.status == 1, ended.err);
    CHECK(orders() == 0);
    CHECK(parked() == keys);
  }

  Command::Arguments redrive_arguments(const Command::Arguments& more = {}) const {
    Command::Arguments words{"redrive"};
    for (std::string& each : broker_.redrive_from(name_)) words.push_back(std::move(each));
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Ended redrive(const Command::Arguments& more = {}) const {
    Command::Arguments words = redrive_arguments({"--idle-exit", broker_.idle_exit()});
    words.insert(words.end(), more.begin(), more.end());
    return run(words, db.url());
  }

  long long parked() const { return db.number("select count(*) from txinbox_consumed_message where state = 'parked'"); }

 private:
  BrokerUnderTest& broker_;
  const std::string name_;
};

/// `redrive` is killed while it works, and the broker, too. Then each message has its effect once, and no dead letter
/// and no failed message is left.
inline void redrive_survives_kills(BrokerUnderTest& broker, const std::string& name) {
  const int times = std::min(kills(3), 20);
  const int restarts = times >= 20 ? 3 : 1;
  const int keys = times * 100;
  AfterBadDeployment t(broker, name, keys);
  const Ended dry = t.redrive({"--dry-run", "--max", "10"});
  CHECK_MESSAGE(dry.status == 0, dry.err);
  CHECK_MESSAGE(dry.out.starts_with("would publish 10, left 0"), dry.out);
  CHECK(t.parked() == keys);
  std::minstd_rand random(7);
  int at_work = 0;
  for (int i = 0; i < times; ++i) {
    Command redrive(t.redrive_arguments({"--rate", "200"}), t.db.url());
    const auto before = t.parked();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (t.parked() == before && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (t.parked() < before) ++at_work;
    if (i * restarts / times != (i + 1) * restarts / times) {
      broker.kill();
      broker.start();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    redrive.signal(SIGKILL);
    (void)redrive.wait();
  }
  const Ended rest = t.redrive();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK_MESSAGE(rest.out.find("left 0") != std::string::npos, rest.out);
  CHECK(t.parked() == 0);
  const Ended repaired = t.consume_rest({"--workers", "4"});
  CHECK_MESSAGE(repaired.status == 0, repaired.err);
  count(times, "times redrive was killed");
  count(at_work, "of them while it worked");
  count(keys, "keys");
  count(t.orders(), "effects");
  CHECK(at_work * 2 >= times);
  CHECK(t.orders() == keys);
  CHECK(t.taken() == keys);
  const Ended nothing = t.redrive();
  CHECK_MESSAGE(nothing.status == 0, nothing.err);
  CHECK_MESSAGE(nothing.out.starts_with("published 0, left 0"), nothing.out);
  CHECK(run({"failed", "list", "--json"}, t.db.url()).out == "[]\n");
}

/// Dead letters that cannot be published are left, and the others are published. The ones that are left come again.
inline void redrive_leaves_what_it_cannot_publish(BrokerUnderTest& broker, const std::string& name,
                                                  const std::string& missing) {
  AfterBadDeployment t(broker, name, 10);
  const Ended gone = t.redrive({"--to", missing});
  CHECK_MESSAGE(gone.status == 1, gone.err);
  CHECK_MESSAGE(gone.out.starts_with("published 0, left 20"), gone.out);
  CHECK_MESSAGE(occurrences(gone.err, "the broker refuses it") >= 5, gone.err);
  const Ended other = t.redrive({"--consumer", "another"});
  CHECK_MESSAGE(other.status == 1, other.err);
  CHECK_MESSAGE(other.out.starts_with("published 0, left 20"), other.out);
  const Ended some = t.redrive({"--max", "5"});
  CHECK_MESSAGE(some.status == 0, some.err);
  CHECK_MESSAGE(some.out.starts_with("published 5, left 0"), some.out);
  const Ended rest = t.redrive({"--json"});
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK_MESSAGE(rest.out.find(R"("redriven":15,"left":0,"end":"at_end")") != std::string::npos, rest.out);
  CHECK(t.consume_rest().status == 0);
  CHECK(t.orders() == 10);
  CHECK(t.taken() == 10);
}

}  // namespace txinbox::test
