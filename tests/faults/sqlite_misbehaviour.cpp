#include "faults/sqlite_misbehaviour.hpp"

#include <array>
#include <utility>

#include <doctest/doctest.h>

namespace txinbox::test {

Misbehaviour::Misbehaviour(const Subject& subject, const GuardCase& each, Place place)
    : subject_(subject),
      case_(each),
      ending_(subject.pooled ? each.in_pool.value() : each.in_session.value()),
      place_(place) {}

std::string Misbehaviour::name() const {
  constexpr std::array places = {", then writes", " between its rows", " at the end"};
  return case_.name + places[static_cast<std::size_t>(place_)];
}

Handler Misbehaviour::handler(FaultDatabase& db, std::function<void()> begins) {
  return [this, &db, begins = std::move(begins)](soci::session& sql, Delivery& delivery) {
    if (done_ || delivery.index() != culprit()) {
      write_two_rows(sql, delivery);
      return;
    }
    done_ = true;
    struct Running {
      explicit Running(bool& flag) : flag_(flag) { flag_ = true; }
      ~Running() { flag_ = false; }
      bool& flag_;
    } const now(running_);
    misbehave(sql, delivery, db, begins);
  };
}

/// It goes on after errors, as careless as it is, where its transaction is lost anyway.
void Misbehaviour::write(soci::session& sql, const Message& message, int part) const {
  if (is_harmless()) {
    write_row(sql, message, part);
  } else {
    quietly([&] { write_row(sql, message, part); });
  }
}

void Misbehaviour::misbehave(soci::session& sql, Delivery& delivery, FaultDatabase& db,
                             const std::function<void()>& begins) {
  delivery.store("stored for " + delivery.message().business_key);
  if (place_ != Place::first) write_row(sql, delivery.message(), 1);
  if (place_ == Place::last) write_row(sql, delivery.message(), 2);
  begins();
  case_.misbehave(sql, db);
  if (place_ == Place::first) write(sql, delivery.message(), 1);
  if (place_ != Place::last) write(sql, delivery.message(), 2);
}

void Misbehaviour::check_end(std::size_t index, const Settled& end, const FaultDatabase& db) const {
  const Message message = messages()[index];
  const std::string claim = db.claim_of(message);
  const std::array counts = {end.rows.first, end.rows.second};
  const bool is_culprit = index == culprit();
  // Which of the rows were written before the handler misbehaved.
  const std::array before = {place_ != Place::first, place_ == Place::last};
  const bool may_be_twice = is_culprit && !subject_.pooled && (ending_.after > 0 || swallowed_);
  CAPTURE(index);
  CAPTURE(claim);
  CAPTURE(counts[0]);
  CAPTURE(counts[1]);
  if (end.action == Action::acknowledge) {
    CHECK(claim == "consumed");
    for (std::size_t part = 0; part < counts.size(); ++part) {
      CHECK(counts[part] >= 1);
      CHECK(counts[part] <= (may_be_twice && !before[part] ? 2 : 1));
    }
    return;
  }
  CHECK(end.action == Action::dead_letter);
  CHECK(ending_.claim == "torn");
  CHECK(claim == "torn");
  for (std::size_t part = 0; part < counts.size(); ++part) {
    // Of the batch, the handlers before it had run, those behind it had not.
    const bool committed = index < culprit() || (is_culprit && before[part]);
    CHECK(counts[part] >= (committed ? 1 : 0));
    CHECK(counts[part] <= (committed || is_culprit ? 1 : 0));
  }
}

}  // namespace txinbox::test
