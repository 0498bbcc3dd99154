#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>

#include <doctest/doctest.h>
#include <soci/soci.h>
#include <txinbox/failed_messages.hpp>
#include <txinbox/tx_consumer.hpp>

#include "support/effects.hpp"
#include "support/outcomes.hpp"

namespace txinbox::test {

inline const Message order{.business_key = "order123", .message_id = "m1"};

/// A handler that fails after its SQL.
inline void refuse(soci::session& sql, Delivery& delivery) {
  add_effect(sql, delivery);
  throw std::invalid_argument("no stock of 4711");
}

inline void reject(soci::session&, Delivery&) { throw Error(ErrorCode::rejected, "not for us"); }

/// Throws what the handler threw, even if this parked the message.
template <class Consumer, class H>
void consume_or_throw(Consumer& consumer, const Message& message, const H& handler) {
  const Result result = consumer.consume(message, handler);
  CHECK(result.outcome == parked);
  CHECK(action_for(result) == Action::dead_letter);
  if (result.error) std::rethrow_exception(result.error);
}

/// A delivery that fails. The failure is counted.
template <class Consumer>
void fails(Consumer& consumer, const Message& message = order) {
  CHECK_THROWS_AS(consume_or_throw(consumer, message, refuse), std::invalid_argument);
}

/// The only failed message. There must be no other one.
inline FailedMessage only_failed(const TestDatabase& db, const FailedFilter& filter = {}) {
  const auto sql = db.session();
  const auto all = list_failed(*sql, filter);
  REQUIRE(all.size() == 1);
  return all.front();
}

inline std::size_t failed_count(const TestDatabase& db) { return list_failed(*db.session()).size(); }

}  // namespace txinbox::test
