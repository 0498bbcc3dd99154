// A statement of a delivery waits for the lock of another session until the lock time-out or the statement time-out
// ends it. The statement is the claim or a statement of the handler.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <txinbox/transaction.hpp>

#include "faults/broker.hpp"
#include "faults/fault_table.hpp"
#include "support/capabilities.hpp"

namespace txinbox::test {
namespace {

using std::chrono::seconds;

/// Another session, which holds a lock until it ends.
class Rival {
 public:
  explicit Rival(const FaultDatabase& db) : sql_(db.session()) {}

  void claim(const Message& message) {
    transaction_.emplace(*sql_);
    CHECK(transaction_->claim(consumer_name, message) == Claim::claimed);
  }

  void lock_effects() {
    if (on_postgresql()) sql_->begin();
    *sql_ << (on_mysql() ? "lock tables effect write" : "lock table effect");
  }

 private:
  std::unique_ptr<soci::session> sql_;
  std::optional<Transaction> transaction_;
};

using Hold = std::function<void(Rival&, const std::vector<Message>&)>;

/// While the rival holds its lock, the delivery waits until a time-out and is not acknowledged. After the rival has
/// ended, the delivery takes effect.
void wait_in_vain(const std::string& kind, const Subject& subject, Waits waits, const Hold& hold) {
  CAPTURE(kind);
  CAPTURE(subject.name);
  const FaultDatabase db;
  Broker broker(db, subject, messages_for(subject, 1));
  Service service(subject, db.url(), waits);
  service.warm_up();
  {
    Rival rival(db);
    hold(rival, broker.messages());
    broker.deliver(service, write_two_rows);
    CHECK(broker.settled().size() < broker.messages().size());
  }
  broker.deliver_until_settled(service);
  const bool doubled = broker.check_promise(service);
  db.check_nothing_open();
  count_case(kind, subject.name, doubled ? Mark::doubled : Mark::none);
}

}  // namespace

TEST_CASE("a statement that waits until its time is over loses and doubles nothing" * doctest::skip(!has_server())) {
  std::vector<std::thread> cases;  // they run at the same time, because they only wait
  const auto with_both_waits = [&](const std::string& what, const Subject& subject, const Hold& hold) {
    cases.emplace_back([what, &subject, hold] {
      wait_in_vain(what + " waits for a lock in vain", subject, {.lock = seconds(1), .statement = seconds(9)}, hold);
    });
    cases.emplace_back([what, &subject, hold] {
      wait_in_vain(what + " runs into its time-out", subject, {.lock = seconds(9), .statement = seconds(1)}, hold);
    });
  };
  for (const Subject& subject : subjects()) {
    for (std::size_t i = 0; i < subject.messages; ++i) {
      with_both_waits("claim", subject, [i](Rival& rival, const auto& messages) { rival.claim(messages[i]); });
    }
    with_both_waits("handler's statement", subject, [](Rival& rival, const auto&) { rival.lock_effects(); });
  }
  for (std::thread& each : cases) each.join();
}

}  // namespace txinbox::test
