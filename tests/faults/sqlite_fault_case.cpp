#include "faults/sqlite_fault_case.hpp"

#include <array>
#include <span>

#include <doctest/doctest.h>

namespace txinbox::test {

std::string to_string(Stage stage) {
  constexpr std::array names = {"opening", "delivery", "closing"};
  return names[static_cast<std::size_t>(stage)];
}

SqliteFaultCase::SqliteFaultCase(const FaultDatabase& db, const SqliteImage& image, const SqliteSetup& setup)
    : db_(db), setup_(setup), broker_(db, setup.subject, messages_for(setup.subject, 1)) {
  image.restore();
}

void SqliteFaultCase::deliver() { actions_ = service_->deliver(broker_.messages(), write_two_rows); }

void SqliteFaultCase::run(const std::function<void()>& breaks, const std::function<void()>& repairs) {
  if (setup_.stage != Stage::opening) {
    open();
    if (setup_.stage == Stage::delivery) {  // in WAL mode, a checkpoint follows each commit
      service_->with_session([](soci::session& sql) { sql << "pragma wal_autocheckpoint = 1"; });
    }
    service_->warm_up();
  }
  if (setup_.stage == Stage::closing) deliver();
  breaks();
  if (setup_.stage == Stage::closing) {
    service_.reset();
  } else {
    try {
      if (!service_) open();
      deliver();
    } catch (...) {  // a pool queries the database when it is opened
      CHECK(action_for(std::current_exception()) == Action::redeliver);
    }
  }
  repairs();
}

void SqliteFaultCase::check_undisturbed() const {
  REQUIRE(actions_.size() == broker_.messages().size());
  for (const Action each : actions_) CHECK(each == Action::acknowledge);
  db_.check_promise(setup_.subject, broker_.messages());
}

Mark SqliteFaultCase::check() {
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    CHECK((actions_[i] == Action::acknowledge || actions_[i] == Action::redeliver));
    if (actions_[i] == Action::acknowledge) db_.check_promise(setup_.subject, std::span(&broker_.messages()[i], 1));
  }
  Service another(setup_.subject, db_.url());
  if (service_) check_service(another);
  // Others can write, and no transaction reads an old snapshot, which would block a full checkpoint.
  db_.run("begin immediate");
  db_.run("rollback");
  CHECK(db_.number("pragma wal_checkpoint(truncate)") == 0);
  broker_.deliver_until_settled(another);
  return broker_.check_promise(another) ? Mark::doubled : Mark::none;
}

void SqliteFaultCase::check_service(Service& another) {
  std::string settings_when_new;
  another.with_session([&](soci::session& sql) { settings_when_new = db_.settings_of(sql); });
  broker_.deliver(*service_, write_two_rows);
  if (setup_.subject.leased && broker_.settled().empty())
    broker_.deliver(*service_, write_two_rows);  // the lease is over
  CHECK(broker_.settled().size() == setup_.subject.messages);
  service_->with_session([&](soci::session& sql) { db_.check_clean(sql, settings_when_new); });
}

void for_each_sqlite_setup(const FaultDatabase& db, std::span<const Subject> tried,
                           const std::function<void(const SqliteImage&, const SqliteSetup&)>& try_all) {
  for (const std::string journal_mode : {"delete", "wal"}) {
    CAPTURE(journal_mode);
    const SqliteImage image(db, journal_mode);
    for (const Subject& subject : tried) {
      CAPTURE(subject.name);
      if (subject.pooled && journal_mode != "wal") continue;  // a pool sets the mode
      for (const Stage stage : {Stage::opening, Stage::delivery, Stage::closing}) {
        const std::string stage_name = to_string(stage);
        CAPTURE(stage_name);
        try_all(image, {subject, journal_mode, stage});
      }
    }
    image.restore();
  }
}

}  // namespace txinbox::test
