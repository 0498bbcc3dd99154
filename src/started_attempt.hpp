#pragma once

#include <optional>
#include <string>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "consumer_context.hpp"
#include "in_flight.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

/// The attempt of one call that is counted from its start: its mark in `txinbox_failed_message`, which is
/// committed before the handler runs and removed when it ends, tells the next delivery that a process died.
class StartedAttempt {
 public:
  StartedAttempt(ConsumerContext& context, const Message& message) : context_(context), message_(message) {}
  ~StartedAttempt();
  StartedAttempt(const StartedAttempt&) = delete;
  StartedAttempt& operator=(const StartedAttempt&) = delete;

  /// Whether the message bears the mark of another process's attempt, which may still run.
  bool finds_mark(backend::Session&);

  /// Once it is certain that nobody holds the key: whether that mark is still there, and what it says.
  enum class Trace {
    none,     ///< That attempt has ended.
    died,     ///< Its process died with this message alone: counted.
    suspect,  ///< Its process died with this message among others.
  };
  Trace judge(backend::Session&);

  /// How many failures there are, after `judge` has counted one.
  int attempts() const noexcept { return attempts_; }

  /// Takes the place, before a connection is: it may wait for others.
  void enter(bool exclusive);

  /// Writes the mark.
  void begin(backend::Session&);
  bool begun() const noexcept { return begun_; }

  /// The statement that removes the mark, for the transaction in which the message is consumed.
  std::string end_sql(backend::Session&) const;

  /// The mark is removed, with that or by the count of a failure.
  void ended() noexcept;

 private:
  struct Mark {
    std::string process;
    bool alone;
  };
  std::optional<Mark> read(backend::Session&);

  ConsumerContext& context_;
  const Message& message_;
  InFlight::Place place_;
  std::string found_;  ///< The process of the mark that was found.
  int attempts_ = 0;
  bool begun_ = false;
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
