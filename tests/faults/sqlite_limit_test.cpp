// SQLite refuses to bind a value.

#include "backend/sqlite3/native.hpp"

#include <doctest/doctest.h>

#include "faults/fault_database.hpp"
#include "faults/subject.hpp"
#include "soci_adapter/soci_connection.hpp"

namespace txinbox::test {

TEST_CASE("a result that is longer than the session's limit is an error, and not NULL" * doctest::skip(!on_sqlite3())) {
  const FaultDatabase db;
  for (const Subject& subject : basic_subjects()) {
    CAPTURE(subject.name);
    Service service(subject, db.url());
    service.warm_up();
    service.with_session([](soci::session& sql) {
      sqlite3_limit(backend::sqlite3_native(*backend::connection_of(sql)), SQLITE_LIMIT_LENGTH, 10000);
    });
    const std::vector<Message> messages = messages_for(subject, 1);
    const std::vector<Action> actions = service.deliver(messages, [](soci::session& sql, Delivery& delivery) {
      write_row(sql, delivery.message(), 1);
      delivery.store(std::string(20000, 'x'));
    });
    for (const Action each : actions) CHECK(each == Action::redeliver);
    for (const Message& each : messages) {
      CHECK(db.claim_of(each) == (subject.leased ? "consuming" : "none"));
      CHECK((db.rows_of(each) == Rows{subject.leased ? 1 : 0, 0}));
    }
  }
}

}  // namespace txinbox::test
