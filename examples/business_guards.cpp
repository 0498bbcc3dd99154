// The inbox and four guards in the business tables. Eight threads do the same thing at the same time, without the guard
// and with it. The program counts how often this went wrong. docs/guides/business-guards.md explains the guards.
//
// Usage: business_guards [URL]      (by default a SQLite file in a temporary folder)
//
// Every user of a machine can read the command lines of all programs. So put a URL with a password into the variable
// BUSINESS_GUARDS_URL instead.

#include <barrier>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <soci/soci.h>
#include <stdlib.h>
#include <txinbox/soci/execute.hpp>
#include <txinbox/txinbox.hpp>

namespace {

constexpr int threads = 8;

/// An effect is what reaches the customer, such as a refund or a parcel.
void take_effect(soci::session& sql, txinbox::Delivery& delivery) {
  txinbox::execute(sql, delivery, "insert into guard_effect values (:id)", delivery.message().message_id);
}

// --- A unique index: all messages are the same payment, under different keys.

/// The inbox knows the message's key. The unique index knows the payment.
void pay(soci::session& sql, txinbox::Delivery& delivery, const std::string& order, const std::string& transaction) {
  const std::string insert = sql.get_backend_name() == "mysql"
                                 ? "insert ignore into guard_payment values (:order, :transaction)"
                                 : "insert into guard_payment values (:order, :transaction) on conflict do nothing";
  if (txinbox::execute(sql, delivery, insert, order, transaction) == 0) {
    delivery.refuse("this payment was booked under another key");
  }
  take_effect(sql, delivery);
}

// --- SELECT ... FOR UPDATE: each message is an order of the last item.

/// `lock` is "for update" or empty. With the lock, the other handlers wait here until this one has committed.
void sell(soci::session& sql, txinbox::Delivery& delivery, const std::string& lock) {
  int stock = 0;
  sql << "select stock from guard_article where sku = 'tea' " + lock, soci::into(stock);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a real handler computes here
  if (stock < 1) return delivery.store("sold out");
  sql << "update guard_article set stock = stock - 1 where sku = 'tea'";
  take_effect(sql, delivery);
}

// --- A version column: each message is a new price. Its sender has seen the article in version 1.

void set_price(soci::session& sql, txinbox::Delivery& delivery, int price) {
  sql << "update guard_article set price = :price, version = version + 1 where sku = 'tea'", soci::use(price);
  take_effect(sql, delivery);
}

/// The sender must read the article again if it has changed since. `version` is in the message.
void set_price_of(soci::session& sql, txinbox::Delivery& delivery, int price, int version) {
  const auto changed = txinbox::execute(sql, delivery,
                                        "update guard_article set price = :price, version = version + 1 "
                                        "where sku = 'tea' and version = :version",
                                        price, version);
  if (changed == 0) delivery.refuse("the article has changed: read it again");
  take_effect(sql, delivery);
}

// --- A version column that the handler itself reads: each message is an order of one cup, and there are enough cups.

/// Takes the cup by an UPDATE that needs the version from before. Returns false if another handler has changed the
/// article meanwhile.
bool take_cup(soci::session& sql, txinbox::Delivery& delivery, bool check_version) {
  int stock = 0;
  int version = 0;
  sql << "select stock, version from guard_article where sku = 'cup'", soci::into(stock), soci::into(version);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a real handler computes here
  std::string update = "update guard_article set stock = :stock, version = version + 1 where sku = 'cup'";
  if (check_version) update += " and version = " + std::to_string(version);
  return txinbox::execute(sql, delivery, update, stock - 1) == 1;
}

/// `ConsumerOptions::is_transient` returns true for it, so `consume` rolls back and runs the handler again.
struct ArticleChanged : std::runtime_error {
  ArticleChanged() : std::runtime_error("another message has changed the article") {}
};

void sell_cup(soci::session& sql, txinbox::Delivery& delivery) {
  if (!take_cup(sql, delivery, true)) throw ArticleChanged();
  take_effect(sql, delivery);
}

bool is_article_changed(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ArticleChanged&) {
    return true;
  } catch (...) {
    return false;
  }
}

// --- A state machine: one message pays an order, three cancel it, and four ship it.

struct Change {
  std::string from, to;
};

Change change_of(int number) {
  if (number == 0) return {"NEW", "PAID"};
  return {"PAID", number % 2 == 0 ? "CANCELLED" : "SHIPPED"};
}

/// The UPDATE names the status that it needs. If it changes no row, the status says why. Returns whether it has changed
/// the row.
bool change_status(soci::session& sql, txinbox::Delivery& delivery, const std::string& order, const Change& change) {
  if (txinbox::execute(sql, delivery, "update guard_order set status = :to where order_no = :order and status = :from",
                       change.to, order, change.from) == 1) {
    return true;
  }
  std::string status = "missing";
  sql << "select status from guard_order where order_no = :order", soci::use(order), soci::into(status);
  if (status == change.to) return false;  // another message did it
  // Too early, because the payment will come. Or another message has changed the status just now.
  const bool later = status == "NEW" || status == change.from;
  if (later) throw txinbox::RetryLater(std::chrono::milliseconds(10));
  throw txinbox::Error(txinbox::ErrorCode::rejected, "an order that is " + status + " cannot become " + change.to);
}

// --- What runs them.

/// The act of a message. `number` says which of the messages it is, from 0.
using Operation = std::function<void(soci::session&, txinbox::Delivery&, int number)>;

const std::string one_effect_is_right = "select count(*) - 1 from guard_effect";

struct Guard {
  std::string name;
  std::string harm;  ///< The harm without it.
  Operation without;
  Operation with;
  bool one_key = false;                     ///< All messages have the same business key.
  bool inbox_without = true;                ///< Whether the inbox runs the operation `without`. It always runs `with`.
  std::string wrong = one_effect_is_right;  ///< The SQL that counts how often it went wrong.
};

/// Without the inbox, each statement is a transaction of its own.
void deliver_without_inbox(txinbox::Pool& pool, const txinbox::Message& message, const Operation& operation,
                           int number) {
  auto connection = pool.acquire();
  txinbox::Delivery delivery(message);
  operation(*connection, delivery, number);
}

/// A real service returns the message to its broker if the handler asks for a later delivery.
void deliver(txinbox::TxConsumer& consumer, const txinbox::Message& message, const Operation& operation, int number) {
  const auto handler = [&](soci::session& sql, txinbox::Delivery& delivery) { operation(sql, delivery, number); };
  auto result = consumer.consume(message, handler);
  while (result.outcome == txinbox::Outcome::postponed) {
    std::this_thread::sleep_for(result.retry_after);
    result = consumer.consume(message, handler);
  }
}

void create_tables(soci::session& sql) {
  txinbox::migrate(sql);
  sql << "create table if not exists guard_effect (message_id varchar(20) primary key)";
  sql << "create table if not exists guard_payment (order_no varchar(20), transaction_no varchar(20), "
         "primary key (order_no, transaction_no))";
  sql << "create table if not exists guard_article (sku varchar(20) primary key, stock int, price int, version int)";
  sql << "create table if not exists guard_order (order_no varchar(20) primary key, status varchar(20))";
}

void reset_tables(soci::session& sql) {
  for (const std::string table : {"guard_effect", "guard_payment", "guard_article", "guard_order"}) {
    sql << "delete from " + table;
  }
  sql << "insert into guard_article values ('tea', 1, 100, 1), ('cup', 8, 5, 1)";
  sql << "insert into guard_order values ('order1', 'NEW')";
}

/// Delivers the messages on all threads at the same time. Returns how often it went wrong.
int count_wrong(txinbox::Pool& pool, const Guard& guard, bool guarded) {
  reset_tables(pool.acquire());
  // With 8 handlers that replace each other's article, the last one runs 8 times or more.
  txinbox::TxConsumer consumer(pool, "business-guards",
                               {.retry = {.max_runs = 100}, .is_transient = is_article_changed});
  // Each run has new keys, so that the program can run again on the same database.
  const std::string key = guard.name + (guarded ? " with " : " without ") + std::to_string(std::random_device()());
  std::barrier ready(threads);
  std::vector<std::exception_ptr> errors(threads);
  const auto work = [&](int number) {
    const std::string id = std::to_string(number);
    const txinbox::Message message{.business_key = guard.one_key ? key : key + ' ' + id, .message_id = id};
    const Operation& operation = guarded ? guard.with : guard.without;
    ready.arrive_and_wait();
    try {
      if (guarded || guard.inbox_without) {
        deliver(consumer, message, operation, number);
      } else {
        deliver_without_inbox(pool, message, operation, number);
      }
    } catch (...) {
      errors[static_cast<std::size_t>(number)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> running;
    for (int number = 0; number < threads; ++number) running.emplace_back(work, number);
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  int wrong = 0;
  *pool.acquire() << guard.wrong, soci::into(wrong);
  return wrong;
}

std::vector<Guard> all_guards(bool sqlite) {
  const auto effect = [](soci::session& sql, txinbox::Delivery& d, int) { take_effect(sql, d); };
  const auto read_and_sell = [](soci::session& sql, txinbox::Delivery& d, int) { sell(sql, d, ""); };
  std::vector<Guard> guards;
  guards.push_back({.name = "inbox",
                    .harm = "8 deliveries of 1 message all take effect",
                    .without = effect,
                    .with = effect,
                    .one_key = true,
                    .inbox_without = false});
  guards.push_back({.name = "unique index",
                    .harm = "1 payment under 8 keys is booked again",
                    .without = effect,
                    .with = [](soci::session& sql, txinbox::Delivery& d, int) { pay(sql, d, "order1", "payment1"); }});
  if (sqlite) {
    // SQLite has no FOR UPDATE. The inbox's transaction begins with BEGIN IMMEDIATE, so only one handler runs at a
    // time.
    guards.push_back({.name = "BEGIN IMMEDIATE (inbox)",
                      .harm = "8 orders buy the last item",
                      .without = read_and_sell,
                      .with = read_and_sell,
                      .inbox_without = false});
  } else {
    guards.push_back({.name = "SELECT ... FOR UPDATE",
                      .harm = "8 orders buy the last item",
                      .without = read_and_sell,
                      .with = [](soci::session& sql, txinbox::Delivery& d, int) { sell(sql, d, "for update"); }});
  }
  guards.push_back(
      {.name = "version column",
       .harm = "8 changes of version 1 replace each other",
       .without = [](soci::session& sql, txinbox::Delivery& d, int number) { set_price(sql, d, 100 + number); },
       .with = [](soci::session& sql, txinbox::Delivery& d, int number) { set_price_of(sql, d, 100 + number, 1); }});
  guards.push_back({.name = sqlite ? "BEGIN IMMEDIATE (inbox)" : "version, in the handler",
                    .harm = "8 sold cups are not taken from the stock",
                    .without =
                        [](soci::session& sql, txinbox::Delivery& d, int) {
                          (void)take_cup(sql, d, false);
                          take_effect(sql, d);
                        },
                    .with = [](soci::session& sql, txinbox::Delivery& d, int) { sell_cup(sql, d); },
                    .inbox_without = !sqlite,
                    .wrong = "select (select count(*) from guard_effect) - (8 - stock) from guard_article "
                             "where sku = 'cup'"});
  guards.push_back({.name = "state machine",
                    .harm = "1 order is shipped, cancelled, and shipped again",
                    .without =
                        [](soci::session& sql, txinbox::Delivery& d, int number) {
                          const Change change = change_of(number);
                          sql << "update guard_order set status = :to where order_no = 'order1'", soci::use(change.to);
                          if (number > 0) take_effect(sql, d);
                        },
                    .with =
                        [](soci::session& sql, txinbox::Delivery& d, int number) {
                          const bool changed = change_status(sql, d, "order1", change_of(number));
                          if (changed && number > 0) take_effect(sql, d);
                        }});
  return guards;
}

void print(const std::string& guard, const std::string& harm, const std::string& without, const std::string& with) {
  std::cout << std::left << std::setw(23) << guard << " | " << std::setw(48) << harm << " | " << std::setw(7) << without
            << " | " << with << std::endl;
}

void run(const std::string& url) {
  auto pool = txinbox::open_pool(url, {.connections = threads});
  {
    // Opens all connections now, so that no thread begins later than the others.
    std::vector<txinbox::Connection> connections;
    for (int number = 0; number < threads; ++number) connections.push_back(pool.acquire());
    create_tables(connections.front());
  }
  const bool sqlite = pool.acquire()->get_backend_name() == "sqlite3";
  print("guard", "what goes wrong without it", "without", "with");
  for (const Guard& guard : all_guards(sqlite)) {
    const auto wrong = [&](bool guarded) { return std::to_string(count_wrong(pool, guard, guarded)) + " wrong"; };
    const std::string without = wrong(false);
    print(guard.name, guard.harm, without, wrong(true));
  }
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (!mkdtemp(path_.data())) throw std::runtime_error("cannot create " + path_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "business_guards.XXXXXX";
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) {
      run(argv[1]);
    } else if (const char* url = std::getenv("BUSINESS_GUARDS_URL")) {
      run(url);
    } else {
      const TemporaryFolder folder;
      run("sqlite://" + folder.path() + "/guards.db");
    }
    return 0;
  } catch (const std::exception&) {
    std::cerr << txinbox::describe_error(std::current_exception()) << '\n';
    return 1;
  }
}
