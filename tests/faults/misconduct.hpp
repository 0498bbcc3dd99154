#pragma once

#include <string>
#include <vector>

#include "faults/broker.hpp"
#include "faults/fault_proxy.hpp"
#include "faults/subject.hpp"
#include "support/guard_cases.hpp"

namespace txinbox::test {

/// One message's handler misbehaves in every run of the first delivery: before, between or behind the
/// two rows that it writes, and then goes on in silence. Later deliveries are honest.
struct Misconduct {
  const GuardCase& guard_case;
  std::size_t message;  ///< Whose handler it is.
  int after_row;        ///< 0, 1 or 2.

  const Ending& ending(const Subject& subject) const {
    return subject.pooled ? *guard_case.in_pool : *guard_case.in_session;
  }

  /// The handler of the first delivery. `began` is called when it begins to misbehave.
  Handler handler(FaultDatabase&, const std::vector<Message>&, std::function<void()> began) const;

  /// Fails the test where a case has not ended as docs/reference/guard.md promises.
  void check(const Subject&, const FaultDatabase&, const Broker&) const;

 private:
  bool is_exact(const Subject&, std::size_t message, const Rows&) const;
};

}  // namespace txinbox::test
