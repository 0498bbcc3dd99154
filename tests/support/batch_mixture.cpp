#include "support/batch_mixture.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <random>
#include <stdexcept>
#include <utility>

#include <soci/soci.h>

#include "support/capabilities.hpp"
#include "support/test_database.hpp"

namespace txinbox::test {
namespace {

struct Declared : std::runtime_error {
  Declared() : std::runtime_error("declared transient") {}
};

constexpr std::size_t max_result = 16;

bool is_declared(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Declared&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Draws the parts of a mixture.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }

  Does kind() {
    constexpr std::array usual{Does::throws,    Does::throws, Does::breaks_constraint, Does::rejects, Does::refuses,
                               Does::postpones, Does::stores, Does::needs_first};
    if (one_in(2)) return Does::nothing;
    if (!one_in(4)) return usual.at(below(usual.size()));
    for (;;) {
      const Does does = static_cast<Does>(below(static_cast<std::size_t>(Does::needs_first) + 1));
      const bool by_sql = does == Does::conflicts_in_database || does == Does::environment_in_sql;
      if (by_sql ? can_raise_errors() : does != Does::fails_at_commit || defers_constraints()) return does;
    }
  }

 private:
  std::mt19937_64 random_;
};

void raise(soci::session& sql, const std::string& postgresql, const std::string& mysql) {
  if (on_postgresql()) {
    sql << "do $$ begin raise exception 'raised' using errcode = '" + postgresql + "'; end $$";
  } else {
    sql << "signal sqlstate 'HY000' set mysql_errno = " + mysql;
  }
}

}  // namespace

Mixture::Mixture(std::uint64_t seed_) : seed(seed_) {
  Dice dice(seed);
  on_failure = dice.one_of({OnFailure::stop, OnFailure::skip, OnFailure::skip, OnFailure::stop_at_parked});
  rounds = dice.one_of({1, 2, 3});
  size = 2 + dice.below(4);
  options.retry = {.max_runs = dice.one_of({1, 2, 3}), .initial_backoff = std::chrono::milliseconds(0)};
  options.max_attempts = dice.one_of({0, 1, 1, 2, 3});
  options.is_transient = is_declared;
  options.max_result = max_result;
  options.max_conflicts = dice.one_of<std::size_t>({0, 1, 8});
  options.keep_error_text = dice.one_in(2);
  if (dice.one_in(3)) options.recent_keys.capacity = 10;
  const std::size_t keys = 1 + dice.below(5);
  std::vector<Does> habits;
  for (std::size_t i = 0; i < keys; ++i) habits.push_back(dice.kind());
  for (std::size_t i = 1; i < keys; ++i) {
    const char* const state =
        dice.one_of({"parked", "torn", "discarded", "consuming", "consumed", "surprise", "old", "expired lease"});
    if (dice.one_in(6)) rows.emplace_back("k" + std::to_string(i), state);
  }
  const bool some_expire = dice.one_in(4);
  const std::size_t count = 1 + dice.below(dice.one_in(20) ? 40 : 9);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t key = dice.below(keys);
    MixedMessage& mixed = messages.emplace_back();
    mixed.message = {.business_key = dice.one_in(25) ? std::string() : "k" + std::to_string(key),
                     .message_id = std::to_string(i),
                     .content = dice.one_of({"", "A", "A", "A", "B", "C"}),
                     .payload = "payload " + std::to_string(i)};
    if (some_expire && dice.one_in(2)) mixed.message.valid_for = std::chrono::hours(24);
    mixed.does = dice.one_in(3) ? dice.kind() : habits[key];
    mixed.rounds = dice.one_of({1, 2, 9, 9});
  }
}

bool Mixture::contains(Does does) const {
  return std::ranges::any_of(messages, [&](const MixedMessage& each) { return each.does == does; });
}

bool Mixture::repeats(std::size_t index, int round) const {
  std::mt19937_64 random(seed * 1000 + index * 10 + static_cast<std::size_t>(round));
  return random() % 4 == 0;
}

void behave(Does does, soci::session& sql, Delivery& delivery, const std::string& consumer) {
  switch (does) {
    case Does::nothing:
      break;
    case Does::stores:
      delivery.store("did " + delivery.message().message_id);
      break;
    case Does::throws:
      throw std::runtime_error("no stock");
    case Does::breaks_constraint:
      sql << "insert into one_row values (1)";
      break;
    case Does::fails_at_commit:
      sql << "insert into child values (2)";
      break;
    case Does::stores_too_much:
      delivery.store(std::string(max_result + 1, 'x'));
      break;
    case Does::rejects:
      throw Error(ErrorCode::rejected, "not valid");
    case Does::refuses:
      delivery.refuse("no " + delivery.message().message_id);
    case Does::postpones:
      throw RetryLater(std::chrono::seconds(30));
    case Does::declared:
      throw Declared();
    case Does::conflicts_in_database:
      raise(sql, "40001", "1205");
      break;
    case Does::misuses:
      throw Error(ErrorCode::invalid_argument, "wrong use");
    case Does::no_memory:
      throw std::bad_alloc();
    case Does::environment_in_sql:
      raise(sql, "53100", "1114");
      break;
    case Does::needs_first: {
      int found = 0;
      sql << "select count(*) from done where consumer = :c and business_key = 'k0'", soci::use(consumer),
          soci::into(found);
      if (found == 0) throw std::logic_error("the first key has no effect yet");
      break;
    }
  }
}

}  // namespace txinbox::test
