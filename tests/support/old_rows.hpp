#pragma once

#include <chrono>
#include <string>

#include "support/effects.hpp"

namespace txinbox::test {

/// A migrated database whose rows have the age that the test wants.
class OldRows : public EffectDatabase {
 public:
  using Age = std::chrono::seconds;

  /// Rows with different keys. Each is a little younger than the one before.
  void add(const std::string& consumer, int count, Age age, const std::string& state = "consumed") const;

  /// The same, but all rows have the same age.
  void add_at_once(const std::string& consumer, int count, Age age) const;

  /// Failed and conflicting messages with the keys "f0", "f1" … Their last delivery has this age.
  void add_failed(const std::string& consumer, int count, Age age) const;
  void add_conflicts(const std::string& consumer, int count, Age age) const;

  /// Gives all rows this age.
  void age_all(Age age) const { run("update txinbox_consumed_message set consumed_at = " + ago(age)); }

  /// The time `age` ago, as SQL.
  static std::string ago(Age age);

  long long claims_of(const std::string& consumer) const;
  long long claims_in(const std::string& state) const;
  long long claims_older_than(Age age) const;

 private:
  void insert(const std::string& consumer, int count, const std::string& time, const std::string& state) const;

  mutable int first_ = 0;
  mutable int first_other_ = 0;
};

}  // namespace txinbox::test
