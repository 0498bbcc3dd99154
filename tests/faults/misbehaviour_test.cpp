// A handler misbehaves in each way of docs/reference/guard.md, at each place of the handler. Then a second fault
// occurs: the connection is cut, the server ends the session, or the process is killed.

#include <csignal>

#include <doctest/doctest.h>

#include "faults/exchange.hpp"
#include "faults/fault_table.hpp"
#include "faults/misbehaving_handler.hpp"
#include "support/capabilities.hpp"
#include "support/child_process.hpp"
#include "support/long_run.hpp"

namespace txinbox::test {
namespace {

class Trial {
 public:
  Trial(FaultDatabase& db, FaultProxy& proxy, const Subject& subject)
      : db_(db), proxy_(proxy), subject_(subject), replica_(subject, db.url()) {}

  /// The points of a delivery, after the misbehaviour, at which the client or the server begins to send.
  std::vector<FaultPoint> points(MisbehavingHandler handler) {
    const auto messages = next_messages();
    Service service(subject_, proxy_.url());
    service.warm_up();
    proxy_.count();
    std::size_t before = 0;
    (void)service.deliver(messages, handler.handler(db_, [&] {
      if (before == 0) before = proxy_.passed_by_now();
    }));
    const auto passed = proxy_.passed();
    std::vector<FaultPoint> all;
    for (std::size_t i = before; i < passed.size(); ++i) {
      if (passed[i].opens_turn) all.push_back({passed[i].direction, passed[i].packet});
    }
    return all;
  }

  void without_fault(MisbehavingHandler handler) {
    Broker broker(db_, subject_, next_messages());
    {
      Service service(subject_, db_.url());
      broker.deliver(service, handler.handler(db_));
    }
    finish("handler misbehaves", handler, broker);
  }

  void with_fault(const std::string& kind, MisbehavingHandler handler, FaultPoint point, Fault fault) {
    CAPTURE(to_string(point));
    Broker broker(db_, subject_, next_messages());
    {
      Service service(subject_, proxy_.url());
      service.warm_up();
      proxy_.arm(point, fault, [&] { return db_.end_session(proxy_.newest_port()); });
      broker.deliver(service, handler.handler(db_));
      CHECK(proxy_.reached());
      // The same process continues when it has a connection again.
      if (subject_.pooled) broker.deliver(service, write_two_rows);
    }
    finish(kind, handler, broker);
  }

  void with_kill(MisbehavingHandler handler, FaultPoint point) {
    CAPTURE(to_string(point));
    Broker broker(db_, subject_, next_messages());
    db_.disconnect();  // the child's handler has its own connection
    const ChildEnding end = run_in_child([&] {
      FaultProxy proxy(db_.url(), on_mysql());
      Service service(subject_, proxy.url());
      service.warm_up();
      proxy.arm(point, Fault::kill_process);
      (void)service.deliver(broker.messages(), handler.handler(db_));
    });
    CHECK(end.signal == SIGKILL);
    finish("handler misbehaves, then the process is killed", handler, broker);
  }

 private:
  std::vector<Message> next_messages() {
    static int number = 0;
    return messages_for(subject_, ++number);
  }

  void finish(const std::string& kind, const MisbehavingHandler& handler, Broker& broker) {
    broker.deliver_until_settled(replica_);
    (void)replica_.deliver(broker.messages(), write_two_rows);
    for (std::size_t i = 0; i < broker.messages().size(); ++i) {
      const Message& each = broker.messages()[i];
      handler.check_end(i, each, broker.settled().at(each.business_key), db_);
    }
    count_case(kind, subject_.name);
  }

  FaultDatabase& db_;
  FaultProxy& proxy_;
  const Subject& subject_;
  Service replica_;
};

enum class Of { every_subject, first_unless_long };

/// With a second fault there are thousands of cases. Without TXINBOX_TEST_LONG, only the cases of the first subject are
/// tried.
template <class Try>
void for_each_trial(Of of, const Try& try_one) {
  FaultDatabase db;
  prepare_guard_case(db);
  { Service(subjects().front(), db.url()).warm_up(); }
  FaultProxy proxy(db.url(), on_mysql());
  for_each_misbehaviour([&](const Subject& subject, const GuardCase& each) {
    if (of == Of::first_unless_long && !long_run() && &subject != &subjects().front()) return;
    Trial trial(db, proxy, subject);
    try_one(trial, subject, each);
  });
}

}  // namespace

TEST_CASE("a handler that misbehaves at any place leaves what docs/reference/guard.md says" *
          doctest::skip(!has_server())) {
  for_each_trial(Of::every_subject, [](Trial& trial, const Subject& subject, const GuardCase& each) {
    for (std::size_t message = 0; message < subject.messages; ++message) {
      for (int rows_before = 0; rows_before <= 2; ++rows_before) {
        CAPTURE(message);
        CAPTURE(rows_before);
        trial.without_fault({subject, each, message, rows_before});
      }
    }
  });
}

TEST_CASE("a handler that misbehaves before the connection is cut leaves what docs/reference/guard.md says" *
          doctest::test_suite("two_faults") * doctest::skip(!has_server())) {
  for_each_trial(Of::first_unless_long, [](Trial& trial, const Subject& subject, const GuardCase& each) {
    const MisbehavingHandler handler(subject, each, subject.messages / 2, 1);
    for (const FaultPoint& point : trial.points(handler)) {
      trial.with_fault("handler misbehaves, then the connection is cut", handler, point, Fault::cut);
    }
  });
}

TEST_CASE("a handler that misbehaves before the server ends the session leaves what docs/reference/guard.md says" *
          doctest::test_suite("two_faults") * doctest::skip(!has_server() || !long_run())) {
  for_each_trial(Of::first_unless_long, [](Trial& trial, const Subject& subject, const GuardCase& each) {
    const MisbehavingHandler handler(subject, each, subject.messages / 2, 1);
    for (const FaultPoint& point : trial.points(handler)) {
      trial.with_fault("handler misbehaves, then the server ends the session", handler, point, Fault::run);
    }
  });
}

TEST_CASE("a handler that misbehaves before the process is killed leaves what docs/reference/guard.md says" *
          doctest::test_suite("two_faults") * doctest::skip(!has_server())) {
  for_each_trial(Of::first_unless_long, [](Trial& trial, const Subject& subject, const GuardCase& each) {
    const MisbehavingHandler handler(subject, each, subject.messages / 2, 1);
    for (const FaultPoint& point : trial.points(handler)) trial.with_kill(handler, point);
  });
}

}  // namespace txinbox::test
