// A service's own handlers, which do not use txinbox. Each is wrapped so that a message takes effect once.
//
// Usage: idempotent_handler [URL]      (by default sqlite:payments.db)

#include <exception>
#include <iostream>
#include <string>

#include <soci/soci.h>
#include <txinbox/txinbox.hpp>

namespace {

struct Payment {
  std::string no;
  std::string account;
  long long cents;
};

struct Event {
  std::string json;
};

// docs/guides/wrapping-handlers.md: the service's own handler
void book(soci::session& sql, const Payment& payment) {
  sql << "update t_account set cents = cents + :cents where no = :no", soci::use(payment.cents),
      soci::use(payment.account);
}

void archive(soci::session& sql, const Event& event) {
  sql << "insert into t_archive values (:json)", soci::use(event.json);
}

void create_business_tables(soci::session& sql) {
  sql << "create table if not exists t_account (no varchar(64) primary key, cents integer not null)";
  sql << "create table if not exists t_archive (json varchar(200) not null)";
  int filled = 0;
  sql << "select count(*) from t_account", soci::into(filled);
  if (filled == 0) sql << "insert into t_account values ('A', 0)";
}

// The answer to the broker for one delivery, for any wrapped handler.
template <class Wrapped, class M>
void deliver(const Wrapped& handle, const M& message) {
  try {
    const txinbox::Result result = handle(message);
    std::cout << txinbox::to_string(result.outcome) << ": " << txinbox::to_string(action_for(result)) << '\n';
  } catch (...) {
    std::cout << "failed: " << txinbox::to_string(txinbox::action_for(std::current_exception())) << '\n';
  }
}

int run(const std::string& url) {
  auto pool = txinbox::open_pool(url);
  {
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    create_business_tables(connection);
  }
  txinbox::TxConsumer consumer(pool, "booking");

  // docs/guides/wrapping-handlers.md: in one line
  const auto on_payment = txinbox::idempotent(consumer, &Payment::no, book);

  for (const char* no : {"p1", "p2", "p1"}) deliver(on_payment, Payment{no, "A", 100});

  // docs/guides/keys-and-content.md: the whole Message
  const txinbox::JsonTemplate key("event:{/id}");
  const txinbox::JsonContent content({"/account", "/is"});
  const auto message_of = [&](const Event& event) {
    const txinbox::JsonDocument json(event.json);
    return txinbox::Message{.business_key = key(json), .content = content(json)};
  };
  const auto on_event = txinbox::idempotent(consumer, message_of, archive);

  deliver(on_event, Event{R"({"id":1,"account":"A","is":"opened"})"});
  deliver(on_event, Event{R"({"id":1,"account":"A","is":"opened","sent":"again"})"});
  deliver(on_event, Event{R"({"id":1,"account":"A","is":"closed"})"});  // a conflict
  deliver(on_event, Event{R"({"account":"A","is":"opened"})"});         // it has no key

  auto connection = pool.acquire();
  long long cents = 0;
  int archived = 0;
  *connection << "select cents from t_account where no = 'A'", soci::into(cents);
  *connection << "select count(*) from t_archive", soci::into(archived);
  std::cout << cents << " cents, " << archived << " event\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sqlite:payments.db");
  } catch (const txinbox::Error& error) {
    std::cerr << "idempotent_handler: " << error.what() << '\n';
  } catch (const std::exception&) {
    std::cerr << "idempotent_handler: the database failed\n";
  }
  return 3;
}
