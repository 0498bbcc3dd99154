#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <librdkafka/rdkafka.h>
#include <txinbox/version.hpp>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// The offset from which a partition must be read again.
///
/// The client seeks at the first poll after the partition was resumed. A seek can be lost if the client handles a
/// response of the broker at the same time. Then the next message is a later one. If it were passed on, its
/// acknowledgement would also acknowledge the messages before it, which nobody has consumed. So the first message after
/// a seek is compared with the offset.
class Rewind {
 public:
  using Time = std::chrono::steady_clock::time_point;

  enum class Verdict {
    pass,  ///< The message is at the right position.
    drop,  ///< The message comes again.
    seek,  ///< The message is at the wrong position. It is dropped, and the client must seek.
  };

  /// Reads again from this offset, or from an earlier one that was asked for and has not been reached.
  void ask(std::int64_t offset) {
    offset_ = is_asked() ? std::min(offset_, offset) : offset;
    rejected_ = RD_KAFKA_OFFSET_INVALID;
    sought_.reset();
  }

  /// Whether no message has been passed on since `ask`.
  bool is_asked() const { return offset_ >= 0; }

  std::int64_t offset() const { return offset_; }

  /// Whether the client has not sought since `ask`.
  bool must_seek() const { return is_asked() && !sought_; }

  void has_sought(Time now) { sought_ = now; }

  /// Whether no message came for a long time after the seek. Then the client seeks again: if a seek was lost at the end
  /// of the partition, no message shows it.
  bool is_late(Time now) const { return is_asked() && sought_ && now - *sought_ >= std::chrono::seconds(10); }

  /// Decides about the next message of the partition. It is not before the offset, see `Partitions::begins_again`.
  ///
  /// There may be no message at the offset any more, because of compaction or retention. Then the first message is the
  /// same one after two seeks.
  Verdict judge(std::int64_t offset) {
    if (!is_asked()) return Verdict::pass;
    if (must_seek()) return Verdict::drop;
    if (offset == offset_ || offset == rejected_) {
      forget();
      return Verdict::pass;
    }
    rejected_ = offset;
    return Verdict::seek;
  }

  void forget() { *this = Rewind(); }

 private:
  std::int64_t offset_ = RD_KAFKA_OFFSET_INVALID;
  std::int64_t rejected_ =
      RD_KAFKA_OFFSET_INVALID;       ///< The offset of the message that was dropped after the last seek.
  std::optional<Time> sought_ = {};  ///< The time of the last seek.
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
