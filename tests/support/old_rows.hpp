#pragma once

#include <chrono>
#include <string>

#include "support/effects.hpp"

namespace txinbox::test {

/// A migrated database whose rows are as old as the test wants.
class OldRows : public EffectDatabase {
 public:
  using Age = std::chrono::seconds;

  /// Rows with keys of their own, each a little younger than the one before.
  void add(const std::string& consumer, int count, Age age, const std::string& state = "consumed") const;

  /// The same, all of one time.
  void add_at_once(const std::string& consumer, int count, Age age) const;

  /// Failed and conflicting messages of the keys "f0", "f1" …, whose last delivery is as old.
  void add_failed(const std::string& consumer, int count, Age age) const;
  void add_conflicts(const std::string& consumer, int count, Age age) const;

  /// Makes all rows as old.
  void age_all(Age age) const { run("update txinbox_consumed_message set consumed_at = " + ago(age)); }

  /// What was `age` ago, as SQL.
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
