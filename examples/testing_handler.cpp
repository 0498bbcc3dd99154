// The test of a handler: check_handler delivers messages to it as a broker does on a bad day.
//
// Usage: testing_handler [URL]      (by default sqlite:testing.db; each run takes new keys)
//
// Exit status: 0 if the right handler has no defect, and the wrong one has some.

#include <chrono>
#include <iostream>
#include <set>
#include <string>

#include <soci/soci.h>
#include <txinbox/handler_check.hpp>
#include <txinbox/txinbox.hpp>

namespace {

// docs/guides/testing.md: the handler
/// Books a payment of 5 cents.
void book(soci::session& sql, txinbox::Delivery& delivery) {
  sql << "insert into t_payment values (:no, 5)", soci::use(delivery.message().business_key);
}
// end

/// A wrong handler: it remembers in memory what it has booked, but not that txinbox rolled it back.
struct BookUnlessKnown {
  std::set<std::string> known = {};
  void operator()(soci::session& sql, txinbox::Delivery& delivery) {
    if (known.insert(delivery.message().business_key).second) book(sql, delivery);
  }
};

bool has_defects(const std::string& url, const txinbox::Handler& handler, const std::string& prefix) {
  // docs/guides/testing.md: the check
  const auto defects = txinbox::check_handler({
      .open_pool = [&] { return txinbox::open_pool(url, {.connections = 2}); },
      .handler = handler,
      .message = [&](int number) { return txinbox::Message{.business_key = prefix + std::to_string(number)}; },
      .effects =
          [](soci::session& sql, const txinbox::Message& message) {
            int payments = 0, cents = 0;
            sql << "select count(*), coalesce(sum(cents), 0) from t_payment where no = :no",
                soci::use(message.business_key), soci::into(payments), soci::into(cents);
            return std::to_string(payments) + " payments, " + std::to_string(cents) + " cents";
          },
  });
  for (const txinbox::HandlerDefect& each : defects) {
    std::cout << "broken: " << each.promise << "\n  " << each.found << "\n  " << each.remedy << '\n';
  }
  // end
  return !defects.empty();
}

int run(const std::string& url) {
  {
    auto pool = txinbox::open_pool(url);
    auto connection = pool.acquire();
    txinbox::migrate(connection);
    *connection << "create table if not exists t_payment (no varchar(64) not null, cents integer not null)";
  }
  const std::string run = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  std::cout << "book:\n";
  if (has_defects(url, book, run + "-right-")) return 1;
  std::cout << "no defects\nbook unless known:\n";
  return has_defects(url, BookUnlessKnown(), run + "-wrong-") ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "sqlite:testing.db");
  } catch (const std::exception&) {
    std::cerr << "testing_handler: " << txinbox::describe_error(std::current_exception()) << '\n';
    return 1;
  }
}
