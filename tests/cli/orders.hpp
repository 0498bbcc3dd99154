#pragma once

#include <string>

#include "support/command.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {

/// A database with the inbox, orders and a stock, as in the README.
class Orders {
 public:
  Orders() {
    db.run("create table t_order (no varchar(60) primary key, sku varchar(60) not null, qty integer not null)");
    db.run("create table t_inventory (sku varchar(60) primary key, stock integer not null)");
    db.run("insert into t_inventory values ('a', 1000000)");
  }

  static Command::Arguments arguments(const Command::Arguments& more = {}) {
    Command::Arguments words{"consume",
                             "--consumer",
                             "orders",
                             "--key",
                             "/no",
                             "--sql",
                             "insert into t_order(no, sku, qty) values (:no, :sku, :qty);"
                             "update t_inventory set stock = stock - :qty where sku = :sku"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Ended consume(const std::string& input, const Command::Arguments& more = {}) const {
    return run(arguments(more), db.url(), input);
  }

  static std::string line(int number) {
    return R"({"no":"o)" + std::to_string(number) + R"(","sku":"a","qty":1})" + "\n";
  }

  long long orders() const { return db.number("select count(*) from t_order"); }
  long long taken() const { return 1'000'000 - db.number("select stock from t_inventory where sku = 'a'"); }

  /// The difference between the stock that was taken and the number of orders. One statement reads both, because a
  /// session whose client was killed may still commit.
  long long taken_without_order() const {
    return db.number("select 1000000 - stock - (select count(*) from t_order) from t_inventory where sku = 'a'");
  }

  TestDatabase db;
};

/// The summary without the rate.
inline std::string counts(const Ended& ended) {
  const std::string line = ended.last_line();
  return line.substr(0, line.find("  ("));
}

}  // namespace txinbox::test
