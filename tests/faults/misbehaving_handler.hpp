#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "faults/broker.hpp"
#include "faults/subject.hpp"
#include "support/guard_cases.hpp"

namespace txinbox::test {

/// The handler of one message misbehaves in the first delivery: before, between or after the two rows that it writes.
/// Then it continues. Later deliveries run the correct handler.
class MisbehavingHandler {
 public:
  /// In which runs of the first delivery the handler misbehaves.
  enum class Runs { every, first };

  /// `message`: the index of the message whose handler misbehaves. `rows_before`: how many rows the handler writes
  /// before that.
  MisbehavingHandler(const Subject& subject, const GuardCase& guard_case, std::size_t message, int rows_before,
                     Runs runs = Runs::every)
      : subject_(subject),
        case_(guard_case),
        ending_(subject.pooled ? guard_case.in_pool.value() : guard_case.in_session.value()),
        message_(message),
        rows_before_(rows_before),
        runs_(runs) {}

  const Subject& subject() const { return subject_; }

  /// Whether the message is consumed in spite of the misbehaviour, as docs/reference/guard.md says.
  bool is_harmless() const { return ending_.how == "consumed"; }

  /// The handler of the first delivery. It calls `begins` immediately before it misbehaves.
  Handler handler(
      FaultDatabase&, std::function<void()> begins = [] {});

  /// Records that a fault occurs now. If the handler is running, it may get and ignore the error.
  void meet_fault() { ignored_fault_ = ignored_fault_ || running_; }

  /// Checks the rows and the claim of the message with this index, when it was acknowledged or dead-lettered. They must
  /// be as docs/reference/guard.md says, except for differences that a fault may cause.
  void check_end(std::size_t index, const Message&, const Settled&, const FaultDatabase&) const;

 private:
  void misbehave(soci::session&, Delivery&, FaultDatabase&, const std::function<void()>& begins) const;
  void check_parked(std::size_t index, const Rows&) const;

  const Subject& subject_;
  const GuardCase& case_;
  const Ending& ending_;
  std::size_t message_;
  int rows_before_;
  Runs runs_;
  bool has_misbehaved_ = false;
  bool running_ = false;
  bool ignored_fault_ = false;
};

/// Tries each misbehaviour of the database under test, with each subject whose handler runs in a transaction.
void for_each_misbehaviour(const std::function<void(const Subject&, const GuardCase&)>& try_one);

}  // namespace txinbox::test
