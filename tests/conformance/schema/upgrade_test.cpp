// Migrates a database with many rows from schema version 1 to the newest, while old and new consumers run. And the
// upgrade of the tables of a txinbox from before 0.1.0.

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/old_library.hpp"
#include "support/outcomes.hpp"
#include "support/schema_tools.hpp"
#include "support/sql_time.hpp"

namespace txinbox::test {
namespace {

using namespace std::chrono_literals;
using Kind = OldDatabase::Kind;

/// Consumers of the old library and of this library. All of them consume the same messages in order, while the tables
/// are migrated.
class Rollout {
 public:
  explicit Rollout(const OldDatabase& db) : db_(db), pool_(db.pool(3)) {}

  void run() {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([this] { guarded([&] { consume_as_old(); }); });
      threads.emplace_back([this] { guarded([&] { consume_as_new(); }); });
    }
    // Both kinds run before the migration begins, and continue after it.
    wait_until([&] { return old_at_ >= 40 && refused_ >= 2; });
    old_before_ = effects();
    guarded([&] { migrate(*db_.session()); });
    const int migrated_at = old_at_;
    wait_until([&] { return old_at_ >= migrated_at + 40; });
    end_ = old_at_ + 40;
    threads.clear();
  }

  static std::string key(int number) { return "message " + std::to_string(number); }

  /// How many messages there were.
  int messages() const { return messages_; }

  /// How many messages took effect before the migration began.
  long long old_effects() const { return old_before_; }

  int refused() const { return refused_; }
  int consumed_by_new() const { return consumed_by_new_; }
  std::vector<std::string> errors() const { return errors_; }

 private:
  long long effects() const { return db_.number("select count(*) from effect"); }

  template <class Condition>
  void wait_until(const Condition& condition) const {
    while (!condition() && !failed_) std::this_thread::sleep_for(1ms);
  }

  template <class F>
  void guarded(const F& work) {
    try {
      work();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      errors_.emplace_back(error.what());
      failed_ = true;
    }
  }

  /// Whether a thread that has consumed all messages before `number` can end.
  bool ends_at(int number) {
    int most = messages_;
    while (most < number && !messages_.compare_exchange_weak(most, number)) {
    }
    return failed_ || (end_ > 0 && number >= end_);
  }

  /// Consumes each message twice. The second time, the message is a duplicate.
  void consume_as_old() {
    const auto sql = db_.session();
    for (int i = 0; !ends_at(i); ++i) {
      (void)consume_as_v1(*sql, "svc", key(i));
      if (consume_as_v1(*sql, "svc", key(i))) throw std::runtime_error("consumed twice by an old consumer");
      if (old_at_ < i) old_at_ = i;
    }
  }

  void consume_as_new() {
    TxConsumer consumer(pool_, "svc");
    for (int i = 0; !ends_at(i);) {
      try {
        const Result result = consumer.consume({.business_key = key(i)}, add_effect);
        if (action_for(result) != Action::acknowledge)
          throw std::runtime_error("a new consumer did not acknowledge a message");
        if (result.outcome == Outcome::consumed) ++consumed_by_new_;
        // Does not run far ahead of the old consumers, so that these find messages to consume, too.
        for (++i; i > old_at_ + 20 && !ends_at(i);) std::this_thread::sleep_for(1ms);
      } catch (const Error& error) {
        if (action_for(std::current_exception()) != Action::stop || error.code() != ErrorCode::schema_outdated) throw;
        ++refused_;
        std::this_thread::sleep_for(1ms);
      }
    }
  }

  const OldDatabase& db_;
  Pool pool_;
  std::atomic<int> old_at_ = -1;
  std::atomic<int> refused_ = 0;
  std::atomic<int> consumed_by_new_ = 0;
  std::atomic<int> end_ = 0;
  std::atomic<int> messages_ = 0;
  std::atomic<bool> failed_ = false;
  long long old_before_ = 0;
  std::mutex mutex_;
  std::vector<std::string> errors_;
};

/// Checks the outcome of a delivery of each old row.
void check_old_rows(Pool& pool, int consumer_number) {
  TxConsumer consumer(pool, OldDatabase::consumer(consumer_number));
  std::vector<Message> messages;
  for (int i = 0; i < OldDatabase::rows_each; ++i) {
    messages.push_back({.business_key = OldDatabase::key(i), .content = OldDatabase::content(i)});
  }
  const auto results = consumer.consume_batch(messages, add_effect, OnFailure::skip);
  int wrong = 0;
  for (int i = 0; i < OldDatabase::rows_each; ++i) {
    const Kind kind = OldDatabase::kind_of(i);
    const Result& result = results[static_cast<std::size_t>(i)];
    const bool is_kept = kind == Kind::with_content ? result.stored == OldDatabase::result(i) : !result.stored;
    const Outcome expected = kind == Kind::torn || kind == Kind::parked ? parked : duplicate;
    if (result.outcome != expected || !is_kept) ++wrong;
  }
  CHECK(wrong == 0);
  for (const int row : {6, 7, 16, 1997}) {
    CHECK(consumer.consume({.business_key = OldDatabase::key(row), .content = "another"}, add_effect).outcome ==
          conflict);
  }
}

/// Checks the features of later versions on old rows.
void check_new_features(const OldDatabase& db, Pool& pool) {
  const std::string consumer = OldDatabase::consumer(0);
  LeaseConsumer lease(pool, consumer);
  const auto must_not_run = [](Lease&) { FAIL("the handler ran"); };
  const Result known = lease.consume({.business_key = OldDatabase::key(6)}, must_not_run);
  CHECK(known.outcome == duplicate);
  CHECK(known.stored == OldDatabase::result(6));
  for (const int row : {8, 9}) {
    CHECK(lease.consume({.business_key = OldDatabase::key(row)}, must_not_run).outcome == parked);
  }

  const auto sql = db.session();
  TxConsumer tx(pool, consumer);
  const auto is_parked = [&](int row) {
    return tx.consume({.business_key = OldDatabase::key(row)}, add_effect).outcome;
  };
  CHECK(list_failed(*sql, {.consumer = consumer, .limit = 10'000}).size() == OldDatabase::rows_each / 10);
  CHECK(retry_failed(*sql, {.consumer = consumer, .business_key = OldDatabase::key(9)}) == 1);
  CHECK(is_parked(9) == consumed);
  CHECK(retry_failed(*sql, {.consumer = consumer, .business_key = OldDatabase::key(8)}) == 0);
  CHECK(is_parked(8) == parked);
  CHECK(discard_failed(*sql, {.consumer = consumer, .business_key = OldDatabase::key(8)}) == 1);
  CHECK(is_parked(8) == Outcome::discarded);
  CHECK(forget(*sql, consumer, OldDatabase::key(0)));
  CHECK(lease.consume({.business_key = OldDatabase::key(0)}, [](Lease&) {}).outcome == consumed);
  CHECK(is_parked(0) == duplicate);

  const std::string other = OldDatabase::consumer(1);
  make_older(db, "consumer = '" + other + "'", std::chrono::hours(2));
  CHECK(purge(*sql, std::chrono::hours(1), {.consumer = other, .duty = 1}) == OldDatabase::rows_each * 8 / 10);
  CHECK(db.number("select count(*) from txinbox_consumed_message where consumer = '" + other + "'") ==
        OldDatabase::rows_each * 2 / 10);
}

void check_rows_and_features(const OldDatabase& db, Pool& pool) {
  const std::string before = db.old_contents();
  const long long effects = db.number("select count(*) from effect");
  for (int i = 0; i < OldDatabase::consumers; ++i) check_old_rows(pool, i);
  CHECK(db.old_contents() == before);
  CHECK(db.number("select count(*) from effect") == effects);
  check_new_features(db, pool);
}

TEST_CASE("from version 1, with running consumers: each message takes effect once, and old rows keep their state") {
  const OldDatabase db(OldSchema::version_1);
  REQUIRE(refusal_by_verify(db)->code == ErrorCode::schema_outdated);
  const std::string before = db.old_contents();
  Rollout rollout(db);
  rollout.run();
  for (const std::string& error : rollout.errors()) FAIL(error);
  CHECK(!refusal_by_verify(db));
  CHECK(rollout.refused() > 0);
  CHECK(rollout.old_effects() > 0);

  // Redeliveries consume the messages that no consumer has consumed.
  Pool pool = db.pool(2);
  TxConsumer consumer(pool, "svc");
  for (int i = 0; i < rollout.messages(); ++i) {
    CHECK(action_for(consumer.consume({.business_key = Rollout::key(i)}, add_effect)) == Action::acknowledge);
  }
  CHECK(db.number("select count(*) from effect") == rollout.messages());
  CHECK(db.number("select count(distinct id) from effect") == rollout.messages());
  CHECK(db.number("select count(*) from txinbox_consumed_message where consumer = 'svc'") == rollout.messages());
  CHECK(db.old_contents() == before);
  check_rows_and_features(db, pool);
}

TEST_CASE("the tables of a txinbox before 0.1.0 are refused until the script for the upgrade was applied") {
  const OldDatabase db(OldSchema::before_0_1_0);
  const std::string before = db.old_contents();
  db.run("update txinbox_failed_message set deaths = 2");
  for (const auto& refusal : {refusal_by_verify(db), refusal_by_migrate(db)}) {
    REQUIRE(refusal);
    CHECK(refusal->code == ErrorCode::schema_mismatch);
    CHECK(refusal->text.find("upgrade_to_0.1.0.sql") != std::string::npos);
    CHECK(refusal->text.find("crashes") == std::string::npos);  // not the differences, which have other remedies
  }
  for (const MigrationState& each : migration_states(*db.session())) CHECK(each.known != each.applied);
  run_statements(db, text_of(upgrade_file()));
  CHECK(refusal_by_verify(db)->code == ErrorCode::schema_outdated);
  migrate(*db.session());
  CHECK(!refusal_by_verify(db));
  CHECK(db.old_contents() == before);
  const auto failed = list_failed(*db.session(), {.consumer = OldDatabase::consumer(0), .limit = 1});
  REQUIRE(failed.size() == 1);
  CHECK(failed.front().crashes == 2);
  Pool pool = db.pool(2);
  check_rows_and_features(db, pool);
}

TEST_CASE("the script for the upgrade may be applied to each earlier version, and again" *
          doctest::skip(on_sqlite3())) {
  const std::string all = text_of(file_before_0_1_0());
  const std::string upgrade = text_of(upgrade_file());
  for (int version = 1; version <= 9; ++version) {
    CAPTURE(version);
    const TestDatabase db(TestDatabase::Tables::none);
    run_statements(db, all.substr(0, all.find(fmt::format("-- txinbox, schema version {}", version + 1))));
    CHECK(refusal_by_verify(db)->code == ErrorCode::schema_mismatch);
    for (int i = 0; i < 2; ++i) run_statements(db, upgrade);
    migrate(*db.session());
    CHECK(!refusal_by_verify(db));
    run_statements(db, upgrade);
    CHECK(!refusal_by_verify(db));
  }
}

}  // namespace
}  // namespace txinbox::test
