#pragma once

/// @file
/// The interface between `run` and a message broker.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <txinbox/incoming.hpp>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_API_BEGIN

/// A message that goes to the dead-letter queue.
struct DeadLetter {
  const Incoming* incoming;       ///< The delivery. It is valid during the call.
  std::string_view reason;        ///< "parked", "conflict", "invalid_key", "rejected", "unreadable",
                                  ///< "result_too_large" or "invalid_message". Sources may have others for messages
                                  ///< that they publish themselves.
  std::string error_class = {};   ///< `txinbox::error_class` of the error, if there was one. It holds no value of the
                                  ///< message.
  std::string consumer = {};      ///< The consumer's name.
  std::string business_key = {};  ///< Empty if it could not be read.
  int failures = 0;               ///< How often its handler has failed since `run` has got this delivery.
                                  ///< `list_failed` counts those of all deliveries.
  bool confirmed = false;         ///< A source sets it when the broker has confirmed that it has the dead letter.
};

/// The status of a source, for metrics and logs.
struct SourceStatus {
  std::string name = {};                  ///< Which source it is: "kafka orders". It holds no password.
  bool connected = false;                 ///< Whether there is a connection to the broker.
  std::optional<std::uint64_t> lag = {};  ///< How many messages wait at the broker; none if it is not known.
  std::size_t lanes = 0;                  ///< How many lanes this source has now: the assigned partitions.
  std::uint64_t reconnects = 0;           ///< How often the source has connected again.

  /// Whether it has given all messages that the broker has for it. It is false also while the source waits for its
  /// lanes. None: the source cannot know it, and `RunOptions::idle_exit` counts as if it were true.
  std::optional<bool> at_end = {};
};

/// The type of an event of a source.
enum class SourceEventType {
  connected,       ///< It is connected to the broker.
  disconnected,    ///< The connection was lost. The source connects again by itself.
  lanes_assigned,  ///< The broker gave it lanes.
  lanes_leaving,  ///< The broker is about to take lanes away. `run` acknowledges what is done, before `report` returns.
  lanes_revoked,  ///< The broker took lanes away.
  warning,        ///< Something that an operator should know. `text` says what to do.
};

/// The name of the enumerator, such as "connected".
std::string_view to_string(SourceEventType) noexcept;

/// Something that happened to a source.
struct SourceEvent {
  SourceEventType type;   ///< The type of the event.
  std::string text = {};  ///< One line for a log. It holds no password and no value of a message.
};

/// Where `run` gets messages from: one object for each connection to a broker.
///
/// A source knows the broker. It does not know the inbox: `run` decides which messages run, in which order, and when a
/// message runs again. `run` keeps a message that must run again. The source does not let the broker deliver this
/// message to others, and does not acknowledge it. So the broker never has to redeliver a message because its handler
/// failed.
///
/// A source may deliver a message again at any time: the inbox answers the duplicate. It must never acknowledge a
/// message by itself.
///
/// docs/guides/your-own-broker.md has a source for a folder of files.
///
/// @threads `run` calls all members on one thread, except `wake`, which any thread may call.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  /// Closes the source as `close` does.
  virtual ~Source();

  /// Returns the messages that have come, in the order of their lanes.
  ///
  /// The first call connects. If the connection is lost later, `poll` reports it and connects again, with a growing
  /// wait, for ever. `run` calls it at least once a second, so a source can do here what must be done regularly.
  ///
  /// @param max  the most messages. With 0 it returns none, but it does everything else: it answers the broker's
  ///             rebalances and heartbeats, and returns early on `wake`.
  /// @param wait the longest time to wait if no message is there. It returns as soon as there is one.
  /// @errors  `Error` broker_refused, access_refused or invalid_argument for what somebody must fix: a queue or topic
  ///          that does not exist, a wrong password. `run` then ends with this error. A lost connection is no error.
  virtual std::vector<Incoming> poll(std::size_t max, std::chrono::milliseconds wait) = 0;

  /// Tells the broker that these messages are done. `run` acknowledges the messages of a lane in their order, without
  /// a gap. It may return before the broker knows: an acknowledgement that is lost causes one more delivery.
  ///
  /// It ignores those that this source does not hold any more.
  ///
  /// @errors as `poll`.
  virtual void acknowledge(std::span<const Incoming* const> messages) = 0;

  /// Whether there is a dead-letter queue. `poll` checks that it exists.
  virtual bool has_dead_letters() const = 0;

  /// Publishes dead letters, and waits for the broker's confirmation, a few seconds at most. It sets `confirmed` for
  /// those that the broker has. `run` acknowledges these afterwards, and tries the others again later.
  ///
  /// After a crash between the two steps, the dead letter comes twice.
  ///
  /// @errors as `poll`. A broker that does not answer is no error.
  virtual void dead_letter(std::span<DeadLetter> letters) = 0;

  /// Whether the broker would still accept the acknowledgement of this message. If not, the broker delivers it again,
  /// here or elsewhere, and `run` forgets it.
  ///
  /// `run` asks after the source has reported `disconnected` or `lanes_revoked`.
  virtual bool holds(const Incoming& message) const;

  /// `poll` must return no messages of this lane until `resume`: the lane waits, and `run` holds as many of its
  /// messages as it may. The broker keeps the others. By default it does nothing, for sources without lanes.
  virtual void pause(std::uint64_t lane);

  /// Ends `pause`. If the broker has taken the lane back since then, the pause may have ended already.
  virtual void resume(std::uint64_t lane);

  /// Whether `rewind` works. By default it does not, and `run` keeps all messages of a lane that waits in memory.
  virtual bool can_rewind() const;

  /// `run` forgets this message and all later ones of its lane, which is paused. After `resume`, `poll` must return
  /// them again, beginning with this message. It must not count as a delivery that failed.
  virtual void rewind(const Incoming& first);

  /// `run` forgets this message, because the source has lost an earlier one of its lane. The broker must deliver it
  /// again after the earlier one. By default it does nothing, for sources that lose only whole lanes.
  virtual void give_back(const Incoming& message);

  /// Makes the running `poll` return soon. If no `poll` is running, the next one returns soon.
  ///
  /// @threads any.
  virtual void wake() noexcept = 0;

  /// Returns the status of the source. It does not wait for the broker.
  virtual SourceStatus status() = 0;

  /// Sends the acknowledgements that are not sent yet, gives all other messages back to the broker, and disconnects. No
  /// other member but `status` and `wake` is called afterwards. A second call does nothing.
  ///
  /// @blocking a few seconds at most.
  virtual void close() noexcept = 0;

  /// `run` sets the function that `report` calls.
  void on_event(std::function<void(const SourceEvent&)> observer) { observer_ = std::move(observer); }

 protected:
  /// Tells `run` what happened. Call it on the thread that calls `poll`, inside a member of this class. For
  /// `lanes_leaving`, `run` calls `acknowledge` before it returns, if there is something to acknowledge.
  void report(SourceEventType type, std::string text);

 private:
  std::function<void(const SourceEvent&)> observer_;
};

/// The headers that a source adds to a dead letter, and that `redrive` adds to a message that it publishes again. The
/// dead-letter queue of RocketMQ takes no headers.
namespace dead_letter_header {

inline constexpr std::string_view reason = "txinbox-reason";            ///< `DeadLetter::reason`.
inline constexpr std::string_view error_class = "txinbox-error-class";  ///< `DeadLetter::error_class`.
inline constexpr std::string_view consumer = "txinbox-consumer";        ///< `DeadLetter::consumer`.
inline constexpr std::string_view key = "txinbox-key";                  ///< `DeadLetter::business_key`.
inline constexpr std::string_view origin = "txinbox-origin";            ///< `Incoming::id` of the message.
inline constexpr std::string_view source = "txinbox-source";      ///< The topic or queue that the message came from.
inline constexpr std::string_view failures = "txinbox-failures";  ///< `DeadLetter::failures`.

/// If the headers of a message do not fit, its dead letter has none of them, but this one with their number.
inline constexpr std::string_view dropped_headers = "txinbox-dropped-headers";

/// How often `redrive` has published the message again. The message and its later dead letters have it.
inline constexpr std::string_view redrives = "txinbox-redrives";

/// The call of `redrive` that has published the message last, as 32 hexadecimal digits.
inline constexpr std::string_view redrive = "txinbox-redrive";

/// Whether a header with this name says why a message became a dead letter: it is one of the first seven. A new dead
/// letter of the message has new ones, and a message that is published again has none.
bool is_about_failure(std::string_view name) noexcept;

}  // namespace dead_letter_header

/// Whether `redrive` removes a header with this name from a message, or replaces it.
bool is_replaced_by_redrive(std::string_view name) noexcept;

TXINBOX_API_END
}  // namespace txinbox
