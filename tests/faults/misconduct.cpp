#include "faults/misconduct.hpp"

#include <memory>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {

Handler Misconduct::handler(FaultDatabase& db, const std::vector<Message>& messages,
                            std::function<void()> began) const {
  const std::string key = messages[message].business_key;
  return [this, &db, key, began = std::move(began)](soci::session& sql, Delivery& delivery) {
    const Message& own = delivery.message();
    if (own.business_key != key) {
      write_two_rows(sql, delivery);
      return;
    }
    for (int row = 1; row <= after_row; ++row) write_row(sql, own, row);
    began();
    guard_case.misbehave(sql, db);
    for (int row = after_row + 1; row <= 2; ++row) quietly([&] { write_row(sql, own, row); });
  };
}

/// Each row is there once; what the handler wrote after it had lost the transaction may be there again
/// where docs/reference/guard.md says that it stays.
bool Misconduct::is_exact(const Subject& subject, std::size_t of, const Rows& rows) const {
  const Ending& end = ending(subject);
  const bool after_stays = of == message && end.how != "consumed" && end.after == 1;
  const auto right = [&](int row, long long count) {
    return count == 1 || (count > 1 && after_stays && row > after_row);
  };
  return right(1, rows.first) && right(2, rows.second);
}

void Misconduct::check(const Subject& subject, const FaultDatabase& db, const Broker& broker) const {
  for (std::size_t i = 0; i < broker.messages().size(); ++i) {
    const Message& each = broker.messages()[i];
    CAPTURE(each.business_key);
    const Settled& end = broker.settled().at(each.business_key);
    const Rows rows = db.rows_of(each);
    CHECK(rows == end.rows);  // nothing has changed since it was settled
    if (end.action == Action::dead_letter) {
      CHECK(ending(subject).claim == "torn");
      CHECK(db.claim_of(each) == "torn");
    } else {
      CAPTURE(rows.first);
      CAPTURE(rows.second);
      CHECK(is_exact(subject, i, rows));
    }
  }
}

}  // namespace txinbox::test
