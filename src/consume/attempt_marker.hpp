#pragma once

#include <optional>
#include <string>

#include <txinbox/message.hpp>
#include <txinbox/version.hpp>

#include "consume/attempt_registry.hpp"
#include "consume/consumer_context.hpp"
#include "tables/failed_message_table.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace detail {

/// The attempt of one call that is counted from its start: its mark in `txinbox_failed_message`, which is
/// committed before the handler runs and removed when it ends, tells the next delivery that a process died.
///
/// The mark says from its birth to its end whether the attempt is exclusive; nobody changes it meanwhile. One
/// that is not makes its message a suspect, and is never counted. A suspect's attempts are exclusive: a mark
/// that one of those leaves is the message's own doing, and is counted.
class AttemptMarker {
 public:
  AttemptMarker(ConsumerContext& context, const Message& message) : context_(context), message_(message) {}
  ~AttemptMarker();
  AttemptMarker(const AttemptMarker&) = delete;
  AttemptMarker& operator=(const AttemptMarker&) = delete;

  /// Whether the message bears the mark of another process's attempt, which may still run.
  bool has_foreign_marker(backend::Session&);

  /// How a live process ends an attempt that fails.
  enum class Order {
    key_first,   ///< Lets go of the key, and then removes the mark.
    mark_first,  ///< The other way round: who has the key meets the marks of the dead only.
  };

  /// Once it is certain that nobody else holds the key: whether that mark is still there and says that the
  /// process died of this message. It is counted then.
  bool counts_crash(backend::Session&, Order);

  /// How many failures there are, after a death was counted.
  int attempts() const noexcept { return attempts_; }

  /// Takes the place, before a connection is: it may wait for others. Returns whether it did.
  ///
  /// Errors: as `AttemptRegistry::enter`.
  bool enter();

  /// Writes the mark.
  void begin(backend::Session&);
  bool begun() const noexcept { return begun_; }

  /// The statement that removes the mark, for the transaction in which the message is consumed.
  std::string end_sql(backend::Session&) const;

  /// The mark is removed, with that or by the count of a failure.
  void ended() noexcept;

  /// Removes the mark of an attempt that ended without a consumed message. If that does not succeed, the
  /// attempt goes on to bear it: `begun` stays true.
  ///
  /// Errors: what the database says.
  void strike_out(backend::Session&);

  /// As that, on a session of its own; an error does not count.
  void strike_out() noexcept;

 private:
  FailedMessageTable table(backend::Session&) const;
  std::optional<ProcessMarker> read(backend::Session&);
  bool stays(backend::Session&, Order);

  ConsumerContext& context_;
  const Message& message_;
  AttemptRegistry::Registration registration_;
  std::string found_;  ///< The process of the mark that was found.
  int attempts_ = 0;
  bool suspect_ = false;  ///< A process died with this message in flight.
  bool begun_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
