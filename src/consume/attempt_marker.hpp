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

/// The marker of one call's attempt in `txinbox_failed_message`. Only `count_starts` uses it.
///
/// The marker is committed before the handler runs, and removed when the attempt ends. If the process crashes, the
/// marker remains and the next delivery finds it.
///
/// A marker says whether its attempt is exclusive; nobody changes that while the marker exists. If a marker of an
/// exclusive attempt remains, its message caused the crash, and the crash is counted. If a marker of another attempt
/// remains, the crash is not counted, but the message becomes a suspect. The attempts of a suspect are exclusive.
class AttemptMarker {
 public:
  AttemptMarker(ConsumerContext& context, const Message& message) : context_(context), message_(message) {}
  ~AttemptMarker();
  AttemptMarker(const AttemptMarker&) = delete;
  AttemptMarker& operator=(const AttemptMarker&) = delete;

  /// Whether the message has a marker of another process. That attempt may still be running.
  bool has_foreign_marker(backend::Session&);

  /// The order in which a live process ends a failed attempt.
  enum class CleanupOrder {
    key_first,     ///< It releases the key, then removes the marker.
    marker_first,  ///< It removes the marker, then releases the key. So the next holder of the key never sees it.
  };

  /// Counts a crash if the found marker remains and its attempt was exclusive. Returns whether it was counted.
  ///
  /// Call it only when it is certain that nobody else holds the key.
  bool counts_crash(backend::Session&, CleanupOrder);

  /// The number of counted failures; after `counts_crash`, it includes that crash.
  int attempts() const noexcept { return attempts_; }

  /// Registers the attempt in this process, and waits for other attempts if it must. Returns whether it waited.
  ///
  /// Call it before borrowing a session, because it can wait.
  ///
  /// Errors: as `AttemptRegistry::enter`.
  bool enter();

  /// Writes the marker.
  void begin(backend::Session&);
  bool begun() const noexcept { return begun_; }

  /// Returns the statement that removes the marker. It runs in the transaction that consumes the message.
  std::string removal_sql(backend::Session&) const;

  /// Records that the marker was removed: by `removal_sql`, or because a failure was counted. Leaves the registry.
  void on_marker_removed() noexcept;

  /// Removes the marker of an attempt that did not consume its message.
  ///
  /// If that fails, the marker stays, and `begun` stays true.
  ///
  /// Errors: a database error as it was.
  void remove_marker(backend::Session&);

  /// Removes the marker on a new session, and ignores errors.
  void remove_marker() noexcept;

 private:
  FailedMessageTable table(backend::Session&) const;
  std::optional<ProcessMarker> read(backend::Session&);
  bool is_of_crashed_attempt(backend::Session&, CleanupOrder);

  ConsumerContext& context_;
  const Message& message_;
  AttemptRegistry::Registration registration_;
  std::string foreign_process_;  ///< The process of the foreign marker that was found.
  int attempts_ = 0;
  bool suspect_ = false;  ///< A process may have crashed because of this message.
  bool begun_ = false;
};

}  // namespace detail
TXINBOX_NAMESPACE_END
}  // namespace txinbox
