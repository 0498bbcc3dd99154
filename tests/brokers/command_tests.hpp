#pragma once

// Tests of the command that must pass on every broker. The tests of each component include this file and call these
// functions.

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/outbox.hpp>

#include "brokers/background_producer.hpp"
#include "brokers/broker_under_test.hpp"
#include "brokers/orders_from_broker.hpp"
#include "support/counts.hpp"

namespace txinbox::test {

/// Runs an example in a new folder, and returns its output. The example creates its database in this folder. One that
/// runs until SIGTERM gets it after `wait` has returned.
inline std::string output_of_example(const std::string& program, const std::string& argument,
                                     const std::function<void()>& wait = {}) {
  const std::string command = "cd \"$(mktemp -d)\" && echo $$ && exec '" + program + "' '" + argument + "'";
  FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c)
  REQUIRE(pipe != nullptr);
  pid_t pid = 0;
  REQUIRE(std::fscanf(pipe, "%d", &pid) == 1);  // NOLINT(cert-err34-c)
  REQUIRE(std::fgetc(pipe) == '\n');
  if (wait) {
    wait();
    CHECK(::kill(pid, SIGTERM) == 0);
  }
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  CHECK(::pclose(pipe) == 0);
  return output;
}

/// Two consumers run, the first one with four workers. One of them is killed repeatedly, while a third one joins and
/// leaves. The broker has messages for them at most kills.
inline void survives_kills(BrokerUnderTest& broker, const std::string& name) {
  const int times = kills(8);
  OrdersFromBroker t(broker, name);
  BackgroundProducer producer([&](int from, int to) { t.publish(from, to); }, 200);
  std::minstd_rand random(7);
  const Command::Arguments several = {"--batch", "10", "--workers", "4"};
  const Command::Arguments single = {"--batch", "10"};
  auto first = t.start(several);
  auto second = t.start(single);
  std::unique_ptr<Command> guest;
  const auto leave = [&] {
    if (!guest) return;
    CHECK(guest->printed("connected"));  // from now on it handles the signal
    guest->signal(SIGTERM);
    CHECK(guest->wait().status == 4);
    guest = nullptr;
  };
  int at_work = 0;
  for (int i = 0; i < times; ++i) {
    const bool is_first = i % 2 == 0;
    auto& victim = is_first ? first : second;
    // Every fourth victim may be killed before it is connected.
    const bool is_connected = i % 4 != 3 && victim->printed("connected");
    const auto kill_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(100 + random() % 200);
    while (std::chrono::steady_clock::now() < kill_at) {
      producer.consumed(t.orders());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const int published = producer.published();
    victim->signal(SIGKILL);
    (void)victim->wait();
    // The broker had sent messages to the victim that it had not acknowledged.
    if (is_connected && t.orders() < published) ++at_work;
    if (i % 20 == 19 && TestDatabase::can_restart_server()) {
      CHECK((is_first ? second : first)->printed("connected"));  // a command that cannot start ends
      t.db.restart_server();
    }
    victim = t.start(is_first ? several : single);
    if (i % 5 == 2) {
      leave();
      guest = t.start(single);
    }
  }
  leave();
  const int orders = producer.stop();
  for (const auto* each : {&first, &second}) {
    CHECK((*each)->printed("connected"));  // from now on it handles the signal
    (*each)->signal(SIGTERM);
  }
  for (const auto* each : {&first, &second}) {
    const Ended ended = (*each)->wait();
    CHECK_MESSAGE(ended.status == 4, ended.err);
  }
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  count(times, "consumers killed");
  count(at_work, "of them while they had messages");
  CHECK(at_work * 3 >= times);
  count(orders, "keys");
  count(t.orders(), "effects");
  CHECK(t.orders() == orders);
  CHECK(t.taken() == orders);
}

/// Waits until another order is consumed, and prints how long this took. Fails if none is consumed within two minutes.
/// Does nothing if all orders are consumed.
inline void waits_for_more(const Orders& t, long long orders) {
  const auto start = std::chrono::steady_clock::now();
  const auto before = t.orders();
  if (before >= orders) return;
  while (t.orders() == before && std::chrono::steady_clock::now() < start + std::chrono::minutes(2)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  note("consumes again after " + std::to_string(waited.count()) + " s");
  CHECK(t.orders() > before);
}

/// The broker is killed and started again while messages are consumed.
inline void survives_broker_restart(BrokerUnderTest& broker, const std::string& name) {
  const int times = std::max(1, kills(1) / 40);
  const int orders = 2000 * times;
  OrdersFromBroker t(broker, name);
  t.publish(0, orders);
  auto consumer = t.start({"--batch", "5"});
  for (int i = 0; i < times; ++i) {
    const auto before = t.orders();
    while (t.orders() == before && t.orders() < orders) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    broker.kill();
    broker.start();
    waits_for_more(t, orders);
  }
  // The same process consumes the messages that are published after the restart.
  t.publish(orders, orders + 50);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (t.orders() < orders + 50 && !consumer->has_ended() && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK_FALSE(consumer->has_ended());
  consumer->signal(SIGTERM);
  const Ended ended = consumer->wait();
  CHECK_MESSAGE(ended.status == 4, ended.err);
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK_MESSAGE(t.orders() == orders + 50, ended.err);
  CHECK(t.taken() == orders + 50);
}

/// The broker dies while the command runs, and stays away. With --idle-exit the command ends, with a status of its own.
inline void ends_if_broker_stays_away(BrokerUnderTest& broker, const std::string& name) {
  OrdersFromBroker t(broker, name);
  t.publish(0, 10);
  auto consumer = t.start({"--idle-exit", "10s"});
  REQUIRE(consumer->printed("connected"));
  broker.kill();
  const Ended ended = consumer->wait();
  CHECK_MESSAGE(ended.status == 5, ended.err);
  CHECK_MESSAGE(ended.err.find("the broker cannot be reached, so messages may wait there") != std::string::npos,
                ended.err);
  broker.start();  // for the other tests; what was made just before the kill may be missing
}

/// The database's server is killed, and starts again only after some time. Then it is killed a few more times. The
/// consumer continues by itself. Only for a server that may be killed, as in the steps …-kills-….
inline void survives_database_restart(BrokerUnderTest& broker, const std::string& name) {
  constexpr int times = 5;
  constexpr int orders = 1000 * times;
  OrdersFromBroker t(broker, name);
  t.publish(0, orders);
  auto consumer = t.start({"--batch", "5"});
  for (int i = 0; i < times; ++i) {
    const auto before = t.orders();
    while (t.orders() == before) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    t.db.restart_server(i == 0 ? std::chrono::seconds(30) : std::chrono::seconds(0));
    const auto then = t.orders();
    waits_for_more(t, orders);
    REQUIRE(t.orders() > then);
  }
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
  while (t.orders() < orders && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK_FALSE(consumer->has_ended());
  consumer->signal(SIGTERM);
  CHECK(consumer->wait().status == 4);
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK(t.orders() == orders);
  CHECK(t.taken() == orders);
}

/// The broker and the database's server are killed together. Then the database starts first, and the broker after it.
/// New messages are consumed each time. Only for a server that may be killed.
inline void survives_both_restarts(BrokerUnderTest& broker, const std::string& name) {
  constexpr int step = 500;
  OrdersFromBroker t(broker, name);
  auto consumer = t.start({"--batch", "5"});
  const auto consumed = [&](int orders) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (t.orders() < orders && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return t.orders() >= orders;
  };
  int published = 0;
  for (int i = 0; i < 3; ++i) {
    t.publish(published, published + step);
    published += step;
    REQUIRE(consumed(published - step + 1));
    broker.kill();
    t.db.restart_server(std::chrono::seconds(i == 0 ? 30 : 5));
    broker.start();
  }
  t.publish(published, published + step);
  published += step;
  CHECK(consumed(published));
  CHECK_FALSE(consumer->has_ended());
  consumer->signal(SIGTERM);
  CHECK(consumer->wait().status == 4);
  const Ended rest = t.consume_rest();
  CHECK_MESSAGE(rest.status == 0, rest.err);
  CHECK(t.orders() == published);
  CHECK(t.taken() == published);
}

/// How many messages `memory_stays_flat` sends. Without the variable, such a test is skipped.
inline int messages_for_memory() {
  const char* wanted = std::getenv("TXINBOX_BROKER_MESSAGES");
  return wanted == nullptr ? 0 : std::atoi(wanted);
}

/// The memory of the command does not grow with the number of messages: after the first fifth of them, it stays the
/// same.
inline void memory_stays_flat(BrokerUnderTest& broker, const std::string& name) {
  constexpr int step = 50'000;
  const int orders = messages_for_memory() / 2;  // each is sent twice
  OrdersFromBroker t(broker, name);
  const auto consumer = t.start({"--batch", "100"});
  long early = 0;
  long late = 0;
  int published = 0;
  auto last_progress = std::chrono::steady_clock::now();
  for (long long done = 0, before = 0; done < orders; before = done) {
    if (published < orders && published - done < 4 * step) {
      const int next = std::min(published + step, orders);
      t.publish(published, next);
      published = next;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    done = t.taken();
    if (done != before) last_progress = std::chrono::steady_clock::now();
    REQUIRE(std::chrono::steady_clock::now() < last_progress + std::chrono::minutes(2));
    long& most = done < orders / 5 ? early : late;
    most = std::max(most, consumer->memory());
  }
  note(std::to_string(2 * orders) + " messages: at most " + std::to_string(early) + " KiB in the first fifth, " +
       std::to_string(late) + " KiB after it");
  CHECK(early > 0);
  CHECK(late * 100 <= early * 105);
  consumer->signal(SIGTERM);
  CHECK(consumer->wait().status == 4);
  CHECK(t.taken() == orders);
}

/// How often `part` occurs in `text`.
inline int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// Messages that cannot be consumed are dead-lettered with a reason, and the valid messages between them are consumed.
inline void dead_letters_do_not_stop_the_others(BrokerUnderTest& broker, const std::string& name) {
  OrdersFromBroker t(broker, name);
  broker.publish(name, "no JSON", "k");
  broker.publish(name, R"({"sku":"a","qty":1})", "k");
  broker.publish(name, R"({"no":")" + std::string(256, 'x') + R"(","sku":"a","qty":1})", "k");
  broker.publish(name, R"({"no":"o9","sku":"a"})", "k");
  broker.publish(name, R"({"no":"big","sku":"a","qty":1,"more":")" + std::string(1UL << 20, 'x') + R"("})", "k");
  t.publish(0, 20);
  const Ended ended = t.consume_rest({"--json"});
  CHECK_MESSAGE(ended.status == 1, ended.err);
  const std::string summary = ended.last_line();
  for (const char* count :
       {R"("consumed":21,)", R"("already_consumed":20,)", R"("dead_letters":4,)", R"("retries":0,)"}) {
    CHECK_MESSAGE(summary.find(count) != std::string::npos, summary);
  }
  CHECK_MESSAGE(occurrences(ended.out, R"("outcome":"dead_letter","reason":"invalid_key"})") == 2, ended.out);
  CHECK_MESSAGE(occurrences(ended.out, R"("outcome":"dead_letter","reason":"unreadable"})") == 2, ended.out);
  for (const char* why : {"malformed JSON", "there is no /no", "256 bytes", ":qty: there is no such member"}) {
    CHECK_MESSAGE(occurrences(ended.err, why) == 1, ended.err);
  }
  CHECK(occurrences(ended.err, "dead letter (invalid_key)") == 2);
  CHECK(occurrences(ended.err, "dead letter (unreadable)") == 2);
  CHECK(t.orders() == 21);
  CHECK(t.consume_rest().status == 0);  // the broker has no more messages
}

/// With `--key` and four workers, the command consumes messages of two sources with ten ids each. Each message has a
/// copy with another body. `keys`: how many business keys these messages have. `add` gives a message to the broker. A
/// message without the header ce_id becomes a dead letter.
inline void consumes_by_key_of_delivery(BrokerUnderTest& broker, const std::string& name, const std::string& key,
                                        const std::string& order, int keys,
                                        const std::function<void(const OutgoingMessage&)>& add) {
  CAPTURE(key);
  OrdersFromBroker t(broker, name);
  const auto message = [&](int i) {
    return OutgoingMessage{.topic = name,
                           .key = "r" + std::to_string(i % 20),
                           .type = "Order",
                           .payload = OrdersFromBroker::body(i),
                           .headers = {{"ce_source", "//shop#" + std::to_string(i % 20 / 10)}},
                           .id = "id-" + std::to_string(i)};
  };
  add(message(9999));
  for (int i = 0; i < 40; ++i) {
    OutgoingMessage each = message(i);
    each.headers.emplace("ce_id", std::to_string(i % 10));
    add(each);
  }
  broker.flush();
  Command::Arguments words = t.arguments({"--idle-exit", broker.idle_exit(), "--workers", "4", "--order", order});
  std::ranges::replace(words, "/no", key);
  const Ended ended = run(words, t.db.url());
  CHECK_MESSAGE(ended.status == 1, ended.err);
  CHECK_MESSAGE(ended.last_line().starts_with("consumed " + std::to_string(keys) + ", already consumed " +
                                              std::to_string(40 - keys) + ", dead letters 1, "),
                ended.last_line());
  CHECK_MESSAGE(occurrences(ended.err, "the message has no header ce_id; dead letter (invalid_key)") == 1, ended.err);
  CHECK(t.orders() == keys);
  CHECK(t.taken() == keys);
}

}  // namespace txinbox::test
