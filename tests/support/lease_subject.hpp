#pragma once

#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <txinbox/lease_consumer.hpp>

namespace txinbox::test {

/// A place for leases. The tests in conformance/lease/shared run on the database, and on each `LeaseStore`. Each test
/// program has one of these.
class LeaseKeeper {
 public:
  /// Makes a new place without keys. Each program defines this function.
  static std::unique_ptr<LeaseKeeper> make();
  virtual ~LeaseKeeper() = default;

  virtual LeaseConsumer consumer(const std::string& name, LeaseTerms terms, ConsumerOptions options) = 0;

  /// The state of the only key: "consuming", "consumed", "parked". Empty if there is no key.
  virtual std::string state() = 0;

  /// When the lease of the only key ends. A later time compares greater.
  virtual std::string ends() = 0;

  /// Makes all leases expire.
  virtual void let_run_out() = 0;

  /// Removes a key of the consumer "svc". Returns whether the key existed.
  virtual bool forget(const std::string& key) = 0;

  /// The number of keys in the state consumed.
  virtual long long consumed() = 0;
};

/// The place for one test.
struct LeaseSubject {
  std::unique_ptr<LeaseKeeper> keeper = LeaseKeeper::make();

  LeaseConsumer consumer(LeaseTerms terms = {}, ConsumerOptions options = {}) const {
    return keeper->consumer("svc", terms, std::move(options));
  }
  LeaseConsumer other_consumer() const { return keeper->consumer("other", {}, {}); }
  std::string state() const { return keeper->state(); }
  std::string ends() const { return keeper->ends(); }
  void let_run_out() const { keeper->let_run_out(); }
  bool forget(const std::string& key) const { return keeper->forget(key); }
  long long completed() const { return keeper->consumed(); }
};

inline constexpr Outcome in_progress = Outcome::in_progress;
inline const Message order{.business_key = "order123", .message_id = "m1"};

inline void nothing(Lease&) {}
inline void must_not_run(Lease&) { FAIL("a handler ran that must not run"); }

}  // namespace txinbox::test
