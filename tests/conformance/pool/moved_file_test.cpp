// Somebody moves or replaces the file of SQLite while a service has it open. Nothing is acknowledged that is not in the
// file that the name means.

#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/txinbox.hpp>

#include "support/effects.hpp"
#include "support/eventually.hpp"
#include "support/outcomes.hpp"
#include "support/recording_publisher.hpp"
#include "support/relay_kit.hpp"

namespace txinbox::test {
namespace {

namespace fs = std::filesystem;

const Message order{.business_key = "order123"};

constexpr auto ends = {"", "-wal", "-shm", "-journal"};  // of the names of a database's files

fs::path file_of(const TestDatabase& db) { return db.url().substr(std::string("sqlite://").size()); }

/// A database whose file an operator moves away, back, or replaces.
class MovableDatabase : public EffectDatabase {
 public:
  MovableDatabase() = default;
  MovableDatabase(const MovableDatabase&) = delete;
  MovableDatabase& operator=(const MovableDatabase&) = delete;
  ~MovableDatabase() {
    for (const char* end : ends) fs::remove(away().string() + end);
  }

  void move_away() const { move(file_of(*this), away()); }
  void move_back() const { move(away(), file_of(*this)); }

  /// Each way in which the file can be another one.
  void replace(const std::string& how) const {
    disconnect();
    const fs::path file = file_of(*this);
    if (how == "a backup is moved over it") {
      const EffectDatabase backup;
      backup.disconnect();
      fs::rename(file_of(backup), file);
    } else if (how == "it is removed") {
      fs::remove(file);
    } else if (how == "it is moved, and another one is made") {
      move_away();
      const EffectDatabase other;
      other.disconnect();
      fs::copy(file_of(other), file);
    } else {
      move_away();
    }
  }

 private:
  fs::path away() const { return file_of(*this).string() + ".away"; }

  /// Renames a database with its log, as an operator does who moves all files.
  static void move(const fs::path& from, const fs::path& to) {
    for (const char* end : ends) {
      if (fs::exists(from.string() + end)) fs::rename(from.string() + end, to.string() + end);
    }
  }
};

constexpr auto moved = "sqlite3 1032";  // SQLITE_READONLY_DBMOVED

constexpr auto ways = {"a backup is moved over it", "it is removed", "it is moved, and another one is made",
                       "it is moved"};

TEST_CASE("a message is not consumed in a file of SQLite that was moved or replaced" * doctest::skip(!on_sqlite3())) {
  for (const std::string how : ways) {
    CAPTURE(how);
    const MovableDatabase db;
    Pool pool = db.pool(1);
    TxConsumer consumer(pool, "svc");
    CHECK(consumer.consume(order, add_effect).outcome == consumed);
    db.replace(how);
    const auto consume = [&](const char* key) {
      return class_of_error([&] { (void)consumer.consume({.business_key = key}, add_effect); });
    };
    CHECK(consume("new") == moved);
    CHECK(consume("order123") == moved);   // the row is only in the old file
    if (how == "it is removed") continue;  // the next connection makes an empty file there
    CHECK(class_of_error([&] { (void)list_failed(pool.acquire()); }) == moved);
    CHECK(class_of_error([&] {
            for (const Result& each : consumer.consume_batch(messages_of({"a", "b"}), add_effect)) {
              if (each.error) std::rethrow_exception(each.error);
            }
          }) == moved);
  }
}

TEST_CASE("a handler during which the file of SQLite is replaced has no effect" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK(class_of_error([&] {
          (void)consumer.consume(order, [&](soci::session& sql, Delivery& delivery) {
            add_effect(sql, delivery);
            db.replace("a backup is moved over it");
          });
        }) == moved);
}

TEST_CASE("a lease is neither granted nor completed in a file that was replaced" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(1);
  LeaseConsumer leases(pool, "svc");
  CHECK(class_of_error(
            [&] { (void)leases.consume(order, [&](Lease&) { db.replace("a backup is moved over it"); }); }) == moved);
  CHECK(class_of_error([&] { (void)leases.consume({.business_key = "new"}, [](Lease&) {}); }) == moved);
}

TEST_CASE("a relay reports that the file of its outbox was replaced" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(2);
  std::mutex mutex;
  std::string error;
  RecordingPublisher publisher;
  const OutboxRelay relay(pool, publisher.publisher(), quick([&](const RelayEvent& event) {
                            if (event.type != RelayEventType::error) return;
                            const std::lock_guard lock(mutex);
                            error = error_class(event.error);
                          }));
  db.replace("a backup is moved over it");
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return error == moved;
  }));
}

TEST_CASE("a session of the caller's own whose file was replaced consumes nothing" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  const auto sql = db.session();
  TxConsumer consumer(*sql, "svc");
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  db.replace("a backup is moved over it");
  CHECK(class_of_error([&] { (void)consumer.consume({.business_key = "new"}, add_effect); }) == moved);
  CHECK(class_of_error([&] { (void)consumer.consume(order, add_effect); }) == moved);
}

TEST_CASE("a connection that is held shows no rows of a file that was replaced" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(1);
  Connection connection = pool.acquire();
  CHECK(list_failed(connection).empty());
  db.replace("a backup is moved over it");
  CHECK(class_of_error([&] { (void)list_failed(connection); }) == moved);
}

// A new connection would also read the write-ahead log of the old file, and damage the new one with it.
TEST_CASE("a pool opens no connection to a file that has replaced its own" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(2);
  const Connection first = pool.acquire();
  db.replace("a backup is moved over it");
  CHECK(class_of_error([&] { (void)pool.acquire(); }) == moved);
  CHECK(class_of_error([&] { (void)db.pool(1).acquire(); }) == moved);
}

TEST_CASE("a file of SQLite that was moved back is used again" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  Pool pool = db.pool(1);
  TxConsumer consumer(pool, "svc", {.max_attempts = 1});
  CHECK(consumer.consume(order, add_effect).outcome == consumed);
  db.disconnect();
  db.move_away();
  CHECK(class_of_error([&] { (void)consumer.consume({.business_key = "new"}, add_effect); }) == moved);
  // No message is the reason, so the later ones of a batch do not run.
  const std::vector<Message> two{{.business_key = "new"}, {.business_key = "later"}};
  const std::vector<Result> results = consumer.consume_batch(two, add_effect);
  CHECK(error_class(results[0].error) == moved);
  CHECK(results[1].outcome == Outcome::not_run);
  db.move_back();
  CHECK(consumer.consume({.business_key = "new"}, add_effect).outcome == consumed);
  CHECK(consumer.consume(order, add_effect).outcome == duplicate);
  CHECK(db.effects() == 2);
}

TEST_CASE("a new pool can open a file that was made after the last pool was closed" * doctest::skip(!on_sqlite3())) {
  const MovableDatabase db;
  {
    Pool pool = db.pool(1);
    CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
  }
  db.replace("a backup is moved over it");
  Pool pool = db.pool(1);
  CHECK(TxConsumer(pool, "svc").consume(order, add_effect).outcome == consumed);
}

}  // namespace
}  // namespace txinbox::test
