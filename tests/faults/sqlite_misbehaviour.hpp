#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "faults/broker.hpp"
#include "support/guard_cases.hpp"

namespace txinbox::test {

/// Where in the handler it misbehaves: before, between or after its two rows.
enum class Place { first, between, last };

/// One message's handler misbehaves, in its first run only: the second of a batch.
class Misbehaviour {
 public:
  Misbehaviour(const Subject&, const GuardCase&, Place);

  std::string name() const;

  /// Whether docs/reference/guard.md says that the handler harms nothing.
  bool is_harmless() const { return ending_.how == "consumed"; }

  Place place() const { return place_; }
  const Subject& subject() const { return subject_; }
  std::vector<Message> messages() const { return messages_for(subject_, 1); }

  /// Runs `begins` just before it misbehaves.
  Handler handler(FaultDatabase&, std::function<void()> begins);

  /// A fault strikes now: the handler, if it is running, meets it, and may swallow it.
  void meet_fault() { swallowed_ = swallowed_ || running_; }

  /// Checks what a message has left when it was acknowledged or parked: docs/reference/guard.md, with what a fault
  /// may change. The handler's own COMMIT may have failed, or a statement whose errors it swallows.
  void check_end(std::size_t index, const Settled&, const FaultDatabase&) const;

 private:
  std::size_t culprit() const { return subject_.messages / 2; }
  void misbehave(soci::session&, Delivery&, FaultDatabase&, const std::function<void()>& begins);
  void write(soci::session&, const Message&, int part) const;

  const Subject& subject_;
  const GuardCase& case_;
  const Ending& ending_;
  Place place_;
  bool done_ = false;
  bool running_ = false;
  bool swallowed_ = false;
};

}  // namespace txinbox::test
