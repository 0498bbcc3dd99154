// Listeners see when calls, attempts and handlers begin and end.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/away.hpp"
#include "support/effects.hpp"
#include "support/leases.hpp"
#include "support/outcomes.hpp"
#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using Lines = std::vector<std::string>;

/// Writes a line for each call: "begin handler k1", "end handler k1: refused".
class Recorder : public Listener {
 public:
  explicit Recorder(Lines& lines, std::string name = {}) : lines_(lines), name_(std::move(name)) {}

  void on_begin(const Scope& scope) override { lines_.push_back(name_ + "begin " + describe(scope)); }

  void on_end(const Scope& scope, const std::exception_ptr& error) override {
    std::string what;
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::exception& e) {
      what = std::string(": ") + e.what();
    } catch (...) {
      what = ": an exception of another kind";
    }
    lines_.push_back(name_ + "end " + describe(scope) + what);
  }

  void on_event(const Event& event) override { lines_.push_back(name_ + std::string(to_string(event.type))); }

 private:
  static std::string describe(const Scope& scope) {
    std::string text(to_string(scope.kind));
    if (scope.attempt > 1) text += " " + std::to_string(scope.attempt);
    for (const Message& message : scope.messages) text += " " + message.business_key;
    return text;
  }

  Lines& lines_;
  const std::string name_;
};

TEST_CASE("a listener sees the call, each attempt and each handler begin and end") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Lines lines;
  TxConsumer consumer(
      pool, "svc",
      {.retry = {.max_runs = 2}, .listeners = {std::make_shared<Recorder>(lines)}, .is_transient = is_away});
  const Message message{.business_key = "k1"};

  SUBCASE("a new message") {
    CHECK(consumer.consume(message, add_effect).outcome == Outcome::consumed);
    CHECK(lines == Lines{"begin consume k1", "begin attempt k1", "begin handler k1", "end handler k1", "end attempt k1",
                         "consumed", "end consume k1"});
  }
  SUBCASE("a duplicate has no handler") {
    (void)consumer.consume(message, add_effect);
    lines.clear();
    CHECK(consumer.consume(message, add_effect).outcome == Outcome::already_consumed);
    CHECK(lines ==
          Lines{"begin consume k1", "begin attempt k1", "end attempt k1", "already_consumed", "end consume k1"});
  }
  SUBCASE("an attempt after a transient error") {
    bool first = true;
    (void)consumer.consume(message, [&](soci::session&, Delivery&) {
      if (std::exchange(first, false)) throw Away();
    });
    CHECK(lines == Lines{"begin consume k1", "begin attempt k1", "begin handler k1", "end handler k1: away",
                         "end attempt k1: away", "retry", "begin attempt 2 k1", "begin handler 2 k1",
                         "end handler 2 k1", "end attempt 2 k1", "consumed", "end consume k1"});
  }
  SUBCASE("a handler that throws") {
    CHECK_THROWS_AS(
        (void)consumer.consume(message, [](soci::session&, Delivery&) { throw std::runtime_error("refused"); }),
        std::runtime_error);
    CHECK(lines == Lines{"begin consume k1", "begin attempt k1", "begin handler k1", "end handler k1: refused",
                         "end attempt k1: refused", "failed", "end consume k1: refused"});
  }
}

TEST_CASE("a refusal is no error of the scopes") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Lines lines;
  TxConsumer consumer(pool, "svc", {.listeners = {std::make_shared<Recorder>(lines)}});
  (void)consumer.consume({.business_key = "k1"}, [](soci::session&, Delivery& delivery) { delivery.refuse("no"); });
  // The second run stores the answer.
  CHECK(lines == Lines{"begin consume k1", "begin attempt k1", "begin handler k1", "end handler k1", "end attempt k1",
                       "begin attempt k1", "end attempt k1", "consumed", "end consume k1"});
}

TEST_CASE("a listener sees one call and one attempt of a batch, and a handler for each message") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Lines lines;
  TxConsumer consumer(pool, "svc", {.listeners = {std::make_shared<Recorder>(lines)}});
  const std::vector<Message> messages{{.business_key = "k1"}, {.business_key = "k2"}};

  (void)consumer.consume_batch(messages, add_effect);
  CHECK(lines == Lines{"begin consume k1 k2", "begin attempt k1 k2", "begin handler k1", "end handler k1",
                       "begin handler k2", "end handler k2", "end attempt k1 k2", "consumed", "consumed",
                       "end consume k1 k2"});

  lines.clear();
  const std::vector<Message> one_fails{{.business_key = "k3"}, {.business_key = "k4"}};
  (void)consumer.consume_batch(
      one_fails,
      [](soci::session&, Delivery& delivery) {
        if (delivery.message().business_key == "k4") throw std::runtime_error("refused");
      },
      OnFailure::skip);
  CHECK(lines == Lines{"begin consume k3 k4", "begin attempt k3 k4", "begin handler k3", "end handler k3",
                       "begin handler k4", "end handler k4: refused", "end attempt k3 k4: refused",
                       "begin attempt 2 k3 k4", "begin handler 2 k3", "end handler 2 k3", "begin handler 2 k4",
                       "end handler 2 k4: refused", "end attempt 2 k3 k4", "consumed", "failed", "end consume k3 k4"});
}

TEST_CASE("a listener sees a lease from its grant to its end as one attempt") {
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Lines lines;
  LeaseConsumer consumer(pool, "svc", {}, {.listeners = {std::make_shared<Recorder>(lines)}});
  (void)consumer.consume({.business_key = "k1"}, [](Lease&) {});
  CHECK(lines == Lines{"begin consume k1", "begin attempt k1", "begin handler k1", "end handler k1", "end attempt k1",
                       "consumed", "end consume k1"});
  lines.clear();
  (void)consumer.consume({.business_key = "k1"}, [](Lease&) {});
  CHECK(lines == Lines{"begin consume k1", "already_consumed", "end consume k1"});
}

TEST_CASE("listeners see an end in the reverse order, and their exceptions are ignored") {
  class Thrower : public Listener {
    void on_begin(const Scope&) override { throw std::runtime_error("listener"); }
    void on_end(const Scope&, const std::exception_ptr&) override { throw std::runtime_error("listener"); }
    void on_event(const Event&) override { throw std::runtime_error("listener"); }
  };
  const EffectDatabase db;
  Pool pool = db.pool(2);
  Lines lines;
  const Listeners listeners{on_event([](const Event&) { throw std::runtime_error("function"); }),
                            std::make_shared<Recorder>(lines, "a "), std::make_shared<Thrower>(),
                            std::make_shared<Recorder>(lines, "b ")};
  TxConsumer consumer(pool, "svc", {.listeners = listeners});
  CHECK(consumer.consume({.business_key = "k1"}, add_effect).outcome == Outcome::consumed);
  CHECK(db.effects() == 1);
  CHECK(lines == Lines{"a begin consume k1", "b begin consume k1", "a begin attempt k1", "b begin attempt k1",
                       "a begin handler k1", "b begin handler k1", "b end handler k1", "a end handler k1",
                       "b end attempt k1", "a end attempt k1", "a consumed", "b consumed", "b end consume k1",
                       "a end consume k1"});
}

TEST_CASE("a null listener is refused") {
  const EffectDatabase db;
  Pool pool = db.pool(1);
  for (const auto& make :
       {std::function<void()>([&] { TxConsumer(pool, "svc", {.listeners = {nullptr}}); }),
        {[&] { LeaseConsumer(pool, "svc", {}, {.listeners = {nullptr}}); }},
        {[&] { purge(pool.acquire(), std::chrono::hours(1), {.listeners = {nullptr}}); }},
        {[&] { Purger(pool, std::chrono::hours(1), {.purge = {.listeners = {nullptr}}}); }},
        {[&] { OutboxRelay(pool, [](auto) { return std::vector<PublishResult>(); }, {.listeners = {nullptr}}); }}}) {
    CHECK(thrown_by(make) == "invalid_argument");
  }
}

TEST_CASE("between the attempts, a listener can use the only connection of the pool") {
  /// Counts the keys when an attempt begins and when it has ended.
  class Reader : public Listener {
   public:
    explicit Reader(Pool& pool) : pool_(pool) {}
    void on_begin(const Scope& scope) override { read(scope); }
    void on_end(const Scope& scope, const std::exception_ptr&) override { read(scope); }
    int reads = 0;

   private:
    void read(const Scope& scope) {
      if (scope.kind == ScopeKind::handler) return;
      int count = 0;
      *pool_.acquire() << "select count(*) from txinbox_consumed_message", soci::into(count);
      ++reads;
    }
    Pool& pool_;
  };
  const EffectDatabase db;
  Pool pool = db.pool(1);
  const auto reader = std::make_shared<Reader>(pool);
  TxConsumer consumer(pool, "svc", {.listeners = {reader}});
  (void)consumer.consume({.business_key = "k1"}, add_effect);
  (void)consumer.consume_batch(std::vector<Message>{{.business_key = "k2"}}, add_effect);
  CHECK(reader->reads == 8);
}

TEST_CASE("a listener may consume on the same pool") {
  EffectDatabase db;
  Pool pool = db.pool(1);
  TxConsumer audit(pool, "audit");
  TxConsumer consumer(pool, "svc", {.listeners = {on_event([&](const Event& e) {
                                      (void)audit.consume({.business_key = std::string(e.business_key)}, add_effect);
                                    })}});
  (void)consumer.consume({.business_key = "k1"}, add_effect);
  CHECK(db.effects() == 2);
}

}  // namespace
}  // namespace txinbox::test
