// A replica that follows its primary. Operators can read there. What writes is refused there, also if its user has
// privileges that the server's own refusal does not stop. So no message takes effect on both servers.

#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/ranges.h>
#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

#include "failover/pair.hpp"
#include "support/command.hpp"
#include "support/outcomes.hpp"
#include "support/test_user.hpp"

namespace txinbox::test {
namespace {

using Keys = std::multiset<std::string>;

/// Records one row of each kind that operators look at: consumed, in conflict, parked, under a lease, in the outbox,
/// and a pause, which is audited.
void record_all(const Pair& db) {
  Pool pool = db.primary();
  TxConsumer consumer(pool, "svc");
  CHECK(consumer.consume({.business_key = "known", .content = "a"}, add_effect).outcome == consumed);
  CHECK(consumer.consume({.business_key = "known", .content = "b"}, add_effect).outcome == conflict);
  const auto reject = [](soci::session&) { throw Error(ErrorCode::rejected, "a test"); };
  CHECK(consumer.consume({.business_key = "bad"}, reject).outcome == parked);
  db.run(
      "insert into txinbox_consumed_message (consumer, business_key, state, attempt_token, consumed_at, lease_owner, "
      "lease_expires_at) select consumer, 'leased', 'consuming', attempt_token, consumed_at, 'a worker', "
      "'2100-01-01 00:00:00' from txinbox_consumed_message where business_key = 'known'");
  const auto sql = db.session();
  Outbox::add(*sql, OutgoingMessage{.topic = "t", .key = "k", .payload = "p"});
  CHECK(run({"pause", "--consumer", "svc", "--reason", "a test"}, db.url()).status == 0);
}

/// The output of a command without its numbers: the ages, rates and sizes that depend on when and where it runs.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.' || c == ' '; });
  return text;
}

/// The numbers of rows that a refused write could have changed.
std::string rows(soci::session& sql) {
  std::string all;
  for (const char* some_rows : {"txinbox_consumed_message", "txinbox_consumed_message where state = 'parked'",
                                "txinbox_consumed_message where business_key = 'known'", "txinbox_failed_message",
                                "txinbox_outbox_message", "txinbox_pause", "txinbox_audit", "effect"}) {
    int count = 0;
    sql << "select count(*) from " << some_rows, soci::into(count);
    all += std::string(some_rows) + ' ' + std::to_string(count) + '\n';
  }
  return all;
}

/// The addresses of the replica: as a user with all privileges, and as a user of the database alone.
class Users {
 public:
  explicit Users(const Pair& db) : user_(db) {
    if (on_mysql()) {
      user_.grant("all on " + schema_of(db) + ".*");
    } else {
      user_.grant("all on schema " + schema_of(db));
      user_.grant("all on all tables in schema " + schema_of(db));
    }
    urls_ = {db.on_replica(db.url()), db.on_replica(user_.url())};
  }

  const std::vector<std::string>& urls() const { return urls_; }

 private:
  User user_;
  std::vector<std::string> urls_;
};

}  // namespace

TEST_SUITE_BEGIN("replica");

TEST_CASE("the commands that read print on the replica what they print on the primary") {
  const Pair db;
  record_all(db);
  db.wait_for_replica();
  const std::string replica = db.on_replica(db.url());
  for (const Command::Arguments& words :
       std::vector<Command::Arguments>{{"status"},
                                       {"show", "known", "--consumer", "svc"},
                                       {"show", "bad", "--consumer", "svc"},
                                       {"failed", "list", "--json"},
                                       {"conflicts"},
                                       {"leases"},
                                       {"outbox", "list"},
                                       {"outbox", "status"},
                                       {"audit", "--json"},
                                       {"purge", "--older-than", "1d", "--dry-run"}}) {
    CAPTURE(fmt::format("{}", fmt::join(words, " ")));
    const Ended there = run(words, replica);
    const Ended here = run(words, db.url());
    CHECK(there.status == 0);
    CHECK(there.err.empty());
    CHECK(without_numbers(there.out) == without_numbers(here.out));
    CHECK(there.out != "nothing found\n");
  }
}

TEST_CASE("the commands that write are refused on the replica, and change nothing") {
  const Pair db;
  record_all(db);
  const Users users(db);
  db.wait_for_replica();
  const auto sql = db.replica_session();
  const std::string before = rows(*sql);
  for (const std::string& url : users.urls()) {
    for (const Command::Arguments& words :
         std::vector<Command::Arguments>{{"forget", "known", "--consumer", "svc"},
                                         {"erase", "known", "--consumer", "svc"},
                                         {"purge", "--older-than", "1d"},
                                         {"failed", "retry", "bad", "--consumer", "svc"},
                                         {"failed", "discard", "bad", "--consumer", "svc"},
                                         {"pause", "--consumer", "svc", "--reason", "again"},
                                         {"resume", "--consumer", "svc"},
                                         {"outbox", "discard", "--all", "--state", "waiting"}}) {
      CAPTURE(fmt::format("{}", fmt::join(words, " ")));
      const Ended ended = run(words, url);
      CAPTURE(ended.out);
      CHECK(ended.status == 3);
      CHECK(ended.err.find("read-only") != std::string::npos);
      CHECK(rows(*sql) == before);
    }
    // MariaDB needs no lock to see that nothing is to be migrated.
    const Ended migrated = run({"migrate"}, url);
    CHECK(migrated.status == (on_mysql() ? 0 : 3));
    CHECK((migrated.err.find("read-only") != std::string::npos) == on_postgresql());
  }
}

TEST_CASE("doctor names a replica") {
  const Pair db;
  db.wait_for_replica();
  const Ended ended = run({"doctor"}, db.on_replica(db.url()));
  CHECK(ended.status == 1);
  CHECK(ended.out.find("nothing can be consumed here") != std::string::npos);
  const Ended primary = run({"doctor"}, db.url());
  CHECK(primary.out.find("nothing can be consumed here") == std::string::npos);
  // PostgreSQL has no privilege to write on a standby.
  CHECK((primary.out.find("READ_ONLY ADMIN") != std::string::npos) == on_mysql());
  const Users users(db);
  CHECK(run({"doctor"}, users.urls().back()).out.find("READ_ONLY ADMIN") == std::string::npos);
}

// Its primary is killed, so it is the last case.
TEST_CASE("a consumer on a replica acknowledges nothing, and consumes when the replica is promoted") {
  const Pair db;
  Pool primary = db.primary();
  TxConsumer before(primary, "svc");
  CHECK(before.consume({.business_key = "known"}, add_effect).outcome == consumed);
  const Users users(db);
  db.wait_for_replica();
  Keys all = {"known"};
  std::vector<Pool> pools;
  for (const std::string& url : users.urls()) pools.push_back(open_pool(url, {.connections = 1}));
  const auto refused = [](const auto& consume) {
    try {
      consume();
      FAIL_CHECK("it was not refused");
    } catch (const std::exception&) {
      CHECK(error_class(std::current_exception()) == "read_only");
      CHECK(action_for(std::current_exception()) == Action::redeliver);
    }
  };
  for (Pool& pool : pools) {
    TxConsumer consumer(pool, "svc", {.retry = {.max_runs = 2}});
    LeaseConsumer leases(pool, "calls");
    for (int delivery = 0; delivery < 3; ++delivery) {
      refused([&] { (void)consumer.consume({.business_key = "known"}, add_effect); });
      refused([&] { (void)consumer.consume({.business_key = "new"}, add_effect); });
      refused([&] { (void)leases.consume({.business_key = "new"}, [](Lease&) {}); });
      for (const Result& each : consumer.consume_batch(messages_of({"known", "new", "newer"}), add_effect)) {
        CHECK(action_for(each) == Action::redeliver);
      }
    }
  }
  CHECK(db.consumed_on_replica() == all);
  CHECK(db.effects_on_replica() == all);

  db.fail_over();
  for (Pool& pool : pools) {
    TxConsumer consumer(pool, "svc");
    const std::string own = "key" + std::to_string(all.size());
    const auto again = [&](const std::string& key) {
      // The first delivery can get a connection from before the promotion.
      for (int i = 0;; ++i) {
        try {
          return consumer.consume({.business_key = key}, add_effect).outcome;
        } catch (const soci::soci_error&) {
          if (!is_transient(std::current_exception()) || i == 3) throw;
        }
      }
    };
    CHECK(again("known") == duplicate);
    CHECK(again(own) == consumed);
    all.insert(own);
  }
  CHECK(db.consumed_on_replica() == all);
  CHECK(db.effects_on_replica() == all);
}

TEST_SUITE_END();

}  // namespace txinbox::test
