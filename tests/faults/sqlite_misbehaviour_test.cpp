// A handler misbehaves, and then a second fault occurs: a later call to a file fails, or all later calls fail, or the
// process is killed at a later statement.

#include <csignal>
#include <optional>

#include <doctest/doctest.h>

#include "faults/fault_table.hpp"
#include "faults/misbehaving_handler.hpp"
#include "faults/sqlite_image.hpp"
#include "faults/sqlite_statements.hpp"
#include "faults/sqlite_vfs.hpp"
#include "support/child_process.hpp"

namespace txinbox::test {
namespace {

struct Scene {
  FaultDatabase& db;
  SqliteVfs& vfs;
  const SqliteImage& image;
  std::string pool_settings;  ///< The settings of a new session.
};

std::vector<Message> messages_of(const MisbehavingHandler& handler) { return messages_for(handler.subject(), 1); }

void check_ends(const Scene& scene, const MisbehavingHandler& handler, const std::vector<Action>& actions) {
  const std::vector<Message> messages = messages_of(handler);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CHECK(actions[i] != Action::stop);
    if (actions[i] == Action::redeliver) continue;
    handler.check_end(i, messages[i], {actions[i], scene.db.rows_of(messages[i])}, scene.db);
  }
}

/// Redelivers with the correct handler until all messages are settled, and then once more.
void check_rest(const Scene& scene, const MisbehavingHandler& handler, Service* service) {
  Broker broker(scene.db, handler.subject(), messages_of(handler));
  std::optional<Service> another;
  if (service != nullptr && !handler.subject().pooled) {  // the service may have lost its session
    broker.deliver(*service, write_two_rows);
    service = nullptr;
  }
  if (service == nullptr) service = &another.emplace(handler.subject(), scene.db.url());
  broker.deliver_until_settled(*service);
  const std::vector<Action> last = service->deliver(broker.messages(), write_two_rows);
  for (std::size_t i = 0; i < last.size(); ++i) {
    const Message& each = broker.messages()[i];
    const Settled& end = broker.settled().at(each.business_key);
    CHECK(last[i] == end.action);
    handler.check_end(i, each, end, scene.db);
  }
  if (handler.subject().pooled) {
    service->with_session([&](soci::session& sql) { scene.db.check_clean(sql, scene.pool_settings); });
  }
}

/// Makes one delivery. The watcher sees all calls after the moment at which the handler misbehaves.
void deliver(const Scene& scene, MisbehavingHandler& handler, const SqliteVfs::Watcher& watcher) {
  scene.image.restore();
  Service service(handler.subject(), scene.db.url());
  const std::vector<Action> actions =
      service.deliver(messages_of(handler), handler.handler(scene.db, [&] { scene.vfs.watch(watcher); }));
  scene.vfs.watch({});
  check_ends(scene, handler, actions);
  check_rest(scene, handler, &service);
}

std::vector<Io> rehearse(const Scene& scene, MisbehavingHandler handler) {
  std::vector<Io> calls;
  deliver(scene, handler, [&](Io io) {
    calls.push_back(io);
    return SqliteVfs::Verdict{};
  });
  return calls;
}

/// Makes call `at` fail. With `lasting`, all later calls fail, too.
void fail(const Scene& scene, MisbehavingHandler handler, std::size_t at, bool lasting) {
  std::size_t passed = 0;
  deliver(scene, handler, [&](Io io) -> SqliteVfs::Verdict {
    const std::size_t now = passed++;
    if (lasting ? now < at : now != at) return {};
    handler.meet_fault();
    return {*code_of(io, io == Io::full_pathname ? Failure::cannot_open : Failure::io_error)};
  });
  REQUIRE(passed > at);
}

enum class Tries { each_call, also_all_from_each_on };

void fail_each_call(const Scene& scene, const MisbehavingHandler& handler, Tries tries) {
  const std::vector<Io> calls = rehearse(scene, handler);
  REQUIRE(!calls.empty());
  const std::string kind = "a misbehaving handler, then an I/O error";
  for (std::size_t at = 0; at < calls.size(); ++at) {
    CAPTURE(at);
    CAPTURE(static_cast<int>(calls[at]));
    fail(scene, handler, at, false);
    count_case(kind, handler.subject().name);
    if (tries == Tries::each_call) continue;
    fail(scene, handler, at, true);
    count_case(kind + ", until repaired", handler.subject().name);
  }
}

void kill_at_each_statement(const Scene& scene, const MisbehavingHandler& prototype) {
  const auto serve = [&](const std::function<void()>& at_point) {
    MisbehavingHandler handler = prototype;
    bool begun = false;
    at_each_sqlite_statement(
        [&] {
          if (begun) at_point();
        },
        AtStatement::begins);
    Service service(handler.subject(), scene.db.url());
    (void)service.deliver(messages_of(handler), handler.handler(scene.db, [&] { begun = true; }));
    begun = false;
  };
  int points = 0;
  scene.image.restore();
  serve([&] { ++points; });
  at_each_sqlite_statement({});
  for (int fatal = 0; fatal < points; ++fatal) {
    CAPTURE(fatal);
    scene.image.restore();
    const ChildEnding end = run_in_child([&] {
      int passed = 0;
      serve([&] {
        if (passed++ == fatal) die();
      });
    });
    REQUIRE(end.signal == SIGKILL);
    check_rest(scene, prototype, nullptr);
    count_case("a misbehaving handler, then the process killed before a statement", prototype.subject().name);
  }
}

}  // namespace

TEST_CASE("a misbehaving handler and a fault leave no more than docs/reference/guard.md says" *
          doctest::skip(!on_sqlite3())) {
  SqliteVfs vfs;
  FaultDatabase db;
  prepare_guard_case(db);
  const SqliteImage image(db, "wal");
  Scene scene{db, vfs, image, {}};
  Service(subjects().front(), db.url()).with_session([&](soci::session& sql) {
    scene.pool_settings = db.settings_of(sql);
  });
  for_each_misbehaviour([&](const Subject& subject, const GuardCase& each) {
    for (int rows_before = 0; rows_before <= 2; ++rows_before) {
      const MisbehavingHandler handler(subject, each, subject.messages / 2, rows_before,
                                       MisbehavingHandler::Runs::first);
      if (handler.is_harmless() && rows_before != 1) continue;
      CAPTURE(rows_before);
      const bool is_middle = rows_before == 1 && !handler.is_harmless();
      fail_each_call(scene, handler, is_middle ? Tries::also_all_from_each_on : Tries::each_call);
      kill_at_each_statement(scene, handler);
    }
  });
}

}  // namespace txinbox::test
