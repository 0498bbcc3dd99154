// A child process of fork() uses or destroys a pool that its parent has opened.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "support/capabilities.hpp"
#include "support/child_process.hpp"
#include "support/effects.hpp"
#include "support/guard_cases.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;

const Message order{.business_key = "order123"};

/// Whether `use` throws `forked`. Only child processes call this. doctest does not report a failed CHECK of a child, so
/// the child's exit status has the result.
template <class F>
bool is_refused(const F& use) {
  try {
    use();
  } catch (...) {
    return code_of(std::current_exception()) == ErrorCode::forked;
  }
  return false;
}

/// A store that grants each lease.
class GrantingStore final : public LeaseStore {
 public:
  LeaseAnswer claim(const LeaseRequest& request) override {
    return {.claim = Claim::claimed, .fence = 1, .remaining = request.lease};
  }
  bool renew(const LeaseRequest&, std::int64_t) override { return true; }
  bool complete(const LeaseRequest&, std::int64_t, const std::optional<std::string>&) override { return true; }
  bool fail(const LeaseRequest&, std::int64_t, const LeaseFailure&) override { return true; }
};

// The thread that sets the stop token when a lease expires exists only in the parent.
TEST_CASE("a child of fork() cannot use the parent's consumer on a store") {
  LeaseConsumer consumer(std::make_shared<GrantingStore>(), "svc");
  const auto use = [&] { (void)consumer.consume(order, [](Lease&) {}); };
  CHECK_NOTHROW(use());
  CHECK(in_process([&] { ::_exit(is_refused(use) ? 0 : 1); }) == 0);
  CHECK_NOTHROW(use());
}

TEST_CASE("a child of fork() cannot use the parent's pool, and the parent still can") {
  EffectDatabase db;
  db.disconnect();
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  TxConsumer remembering(pool, "svc", {.recent_keys = {.capacity = 10}});
  TxConsumer counting(pool, "svc", {.count_starts = true});
  LeaseConsumer leases(pool, "leases");
  CHECK(remembering.consume({.business_key = "before"}, add_effect).outcome == consumed);
  (void)leases.consume({.business_key = "before"}, [](Lease&) {});  // starts the timer of `leases`
  const int accepted = in_process([&] {
    int count = 0;
    const auto use = [&](const auto& f) { count += is_refused(f) ? 0 : 1; };
    use([&] { const Connection connection = pool.acquire(); });
    use([&] { (void)consumer.consume(order, add_effect); });
    use([&] { (void)consumer.consume_batch(messages_of({"a", "b"}), add_effect); });
    use([&] { (void)remembering.consume({.business_key = "before"}, add_effect); });
    use([&] { (void)counting.consume(order, add_effect); });
    use([&] { (void)leases.consume(order, [](Lease&) {}); });
    ::_exit(count);
  });
  CHECK(accepted == 0);
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a child of fork() can use a pool that it opens itself") {
  EffectDatabase db;
  db.disconnect();
  auto pool = std::make_unique<Pool>(db.pool(1));
  CHECK(TxConsumer(*pool, "svc", {.count_starts = true}).consume(order, add_effect).outcome == consumed);
  if (on_sqlite3()) pool.reset();  // see the next case
  const int status = in_process([&] {
    Pool own = db.pool(1);
    const Outcome outcome = TxConsumer(own, "svc", {.count_starts = true}).consume(order, add_effect).outcome;
    ::_exit(outcome == duplicate ? 0 : 1);
  });
  CHECK(status == 0);
}

// SQLite knows in the child of the parent's locks, which are not the child's. A commit of the child could get lost.
TEST_CASE("a child of fork() cannot open a file of SQLite that a pool of its parent has open" *
          doctest::skip(!on_sqlite3())) {
  EffectDatabase db;
  db.disconnect();
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  const auto open = [&] { const Connection connection = db.pool(1).acquire(); };
  CHECK(in_process([&] { ::_exit(is_refused(open) ? 0 : 1); }) == 0);
  CHECK(consumer.consume({.business_key = "next"}, add_effect).outcome == consumed);
  CHECK(db.effects() == 2);
}

TEST_CASE("a child of fork() that destroys the parent's objects closes no connection of the parent") {
  EffectDatabase db;
  db.disconnect();
  auto pool = std::make_unique<Pool>(db.pool(2));
  auto purger = std::make_unique<Purger>(*pool, 1h);
  auto consumer = std::make_unique<TxConsumer>(*pool, "svc");
  auto leases = std::make_unique<LeaseConsumer>(*pool, "leases");
  (void)leases->consume(order, [](Lease&) {});  // starts the timer of `leases`
  auto held = std::make_unique<Connection>(pool->acquire());
  held->session() << "create table own_of_session (id integer)";
  soci::transaction open(held->session());
  held->session() << "insert into own_of_session values (1)";
  // A thread waits for a connection when the child is created.
  auto last = std::make_unique<Connection>(pool->acquire());
  std::stop_source stop;
  std::atomic<bool> asks = false;
  std::thread waiting([&] {
    asks = true;
    CHECK_THROWS_AS((void)pool->acquire(stop.get_token()), Error);
  });
  while (!asks) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  CHECK(in_process([&] {
          held.reset();
          last.reset();
          purger.reset();
          leases.reset();
          consumer.reset();
          pool.reset();
        }) == 0);
  stop.request_stop();
  waiting.join();
  held->session() << "insert into own_of_session values (2)";
  open.commit();
  CHECK(db.number("select count(*) from own_of_session") == 2);
  const std::optional<long long> id =
      has_server() ? std::optional<long long>(connection_id(last->session())) : std::nullopt;
  last.reset();
  if (id) CHECK(connection_id(pool->acquire().session()) == id);  // the same session as before
  held.reset();
  CHECK(consumer->consume(order, add_effect).outcome == consumed);
}

TEST_CASE("idle connections stay open if a child of fork() destroys the pool") {
  EffectDatabase db;
  db.disconnect();
  auto pool = std::make_unique<Pool>(db.pool(1));
  const auto id = [&]() -> long long {
    const Connection connection = pool->acquire();
    return has_server() ? connection_id(connection.session()) : 0;
  };
  const long long before = id();
  CHECK(in_process([&] { pool.reset(); }) == 0);
  CHECK(id() == before);
}

}  // namespace
}  // namespace txinbox::test
