#include "faults/misbehaving_handler.hpp"

#include <array>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {

Handler MisbehavingHandler::handler(FaultDatabase& db, std::function<void()> begins) {
  return [this, &db, begins = std::move(begins)](soci::session& sql, Delivery& delivery) {
    if (delivery.index() != message_ || (has_misbehaved_ && runs_ == Runs::first)) {
      write_two_rows(sql, delivery);
      return;
    }
    has_misbehaved_ = true;
    struct Running {
      explicit Running(bool& flag) : flag_(flag) { flag_ = true; }
      ~Running() { flag_ = false; }
      bool& flag_;
    } const now(running_);
    misbehave(sql, delivery, db, begins);
  };
}

void MisbehavingHandler::misbehave(soci::session& sql, Delivery& delivery, FaultDatabase& db,
                                   const std::function<void()>& begins) const {
  const Message& own = delivery.message();
  delivery.store("stored for " + own.business_key);
  for (int row = 1; row <= rows_before_; ++row) write_row(sql, own, row);
  begins();
  case_.misbehave(sql, db);
  for (int row = rows_before_ + 1; row <= 2; ++row) {
    // On SQLite the transaction continues after an error. So a handler that ignores the error loses a row.
    if (on_sqlite3() && is_harmless()) {
      write_row(sql, own, row);
    } else {
      quietly([&] { write_row(sql, own, row); });
    }
  }
}

void MisbehavingHandler::check_end(std::size_t index, const Message& message, const Settled& end,
                                   const FaultDatabase& db) const {
  const std::string claim = db.claim_of(message);
  CAPTURE(message.business_key);
  CAPTURE(claim);
  CAPTURE(end.rows.first);
  CAPTURE(end.rows.second);
  CHECK(db.rows_of(message) == end.rows);  // nothing has changed after the message was settled
  if (end.action != Action::acknowledge) {
    CHECK(end.action == Action::dead_letter);
    CHECK(ending_.claim == "torn");
    CHECK(claim == "torn");
    check_parked(index, end.rows);
    return;
  }
  CHECK(claim == "consumed");
  // Rows that the handler wrote after it had lost the transaction may still exist when the message ran again.
  const bool may_repeat =
      index == message_ && ((!is_harmless() && ending_.after > 0) || (ignored_fault_ && !subject_.pooled));
  const std::array counts = {end.rows.first, end.rows.second};
  for (int row = 1; row <= 2; ++row) {
    const long long count = counts[static_cast<std::size_t>(row) - 1];
    CHECK((count == 1 || (count > 1 && may_repeat && row > rows_before_)));
  }
}

/// Checks a batch whose handler misbehaved. The handlers before it had run, and the handlers after it had not.
void MisbehavingHandler::check_parked(std::size_t index, const Rows& rows) const {
  const std::array counts = {rows.first, rows.second};
  for (int row = 1; row <= 2; ++row) {
    const long long count = counts[static_cast<std::size_t>(row) - 1];
    const bool committed = index < message_ || (index == message_ && row <= rows_before_);
    CHECK(count >= (committed ? 1 : 0));
    CHECK(count <= (committed || index == message_ ? 1 : 0));
  }
}

void for_each_misbehaviour(const std::function<void(const Subject&, const GuardCase&)>& try_one) {
  for (const Subject& subject : transaction_subjects()) {
    CAPTURE(subject.name);
    for (const GuardCase& each : guard_cases()) {
      if (!each.in_pool) continue;  // the database has no such statement
      CAPTURE(each.name);
      try_one(subject, each);
    }
  }
}

}  // namespace txinbox::test
