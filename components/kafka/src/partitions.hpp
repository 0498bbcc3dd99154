#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <txinbox/version.hpp>

#include "client.hpp"
#include "rewind.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// The partitions that this consumer has or had. A partition's index in the table is its lane.
///
/// It also records which partitions are paused at the client, and why. If a partition is still paused when it is
/// revoked, it delivers nothing after the next assignment, without an error. If a partition is resumed that is not
/// paused, its position can go back. So each partition is resumed exactly once, when its last reason to be paused ends.
class Partitions {
 public:
  struct Partition {
    std::string topic;
    std::int32_t number;
    std::uint64_t epoch = 0;  ///< The number of assignments. Messages of an earlier assignment are not held any more.
    bool is_assigned = false;
    bool is_paused_by_run = false;
    bool is_paused_for_room = false;
    std::int64_t delivered = RD_KAFKA_OFFSET_INVALID;  ///< The offset of the last delivered message, plus one.
    Rewind rewind = {};
    bool is_at_end = false;              ///< The client has found no message behind the last one.
    bool is_group_offset_known = false;  ///< Whether the group's offset was looked at since the assignment.

    bool is_paused() const { return is_paused_by_run || is_paused_for_room; }
  };

  std::uint64_t lane_of(std::string_view topic, std::int32_t number);
  Partition& at(std::uint64_t lane) { return partitions_.at(lane); }
  const Partition& at(std::uint64_t lane) const { return partitions_.at(lane); }
  const std::vector<Partition>& all() const { return partitions_; }

  void assigned(const rd_kafka_topic_partition_list_t& list);

  /// Also resumes paused partitions at the client.
  void revoked(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& list);

  /// Each of these two functions sets one reason for a pause. It pauses or resumes a partition at the client only if
  /// the other reason does not apply.
  void set_paused_by_run(rd_kafka_t* client, std::uint64_t lane, bool paused);
  void set_all_paused_for_room(rd_kafka_t* client, bool paused);

  /// The partition is read again from this offset, at the next `seek_rewound` after it was resumed at the client.
  void rewind(std::uint64_t lane, std::int64_t offset);

  /// Whether to pass on the next message that the client returns. If the message is at the wrong position after a
  /// rewind, the client seeks again.
  bool passes(rd_kafka_t* client, std::uint64_t lane, std::int64_t offset);

  /// Whether the next message that the client returns is before those that it has returned. Then the client has found
  /// another log: the topic was deleted and created again, or its broker has lost messages.
  bool begins_again(std::uint64_t lane, std::int64_t offset) const;

  /// Consumes the log from its start, because the client returned this message of it. The messages of the old log are
  /// not held any more. It also replaces the group's offset, which may be of the old log: after a crash, the next
  /// consumer would begin there.
  void begin_again(rd_kafka_t* client, std::uint64_t lane, std::int64_t offset);

  /// Seeks in the partitions that were rewound and are not paused, and again in those that have delivered nothing for
  /// long after that.
  void seek_rewound(rd_kafka_t* client, Rewind::Time now);

  std::size_t assigned_count() const;

  /// Whether all assigned partitions are at their end.
  bool are_at_end() const;

  static std::string name_of(const Partition& partition) {
    return partition.topic + "/" + std::to_string(partition.number);
  }

  /// The names of the partitions, for example "orders/0 orders/3". If there are many, only their number.
  static std::string names_of(const rd_kafka_topic_partition_list_t& list);

  /// The partitions whose offsets the client has not stored, with the reasons. Empty if there are none. It does not
  /// contain partitions that were just revoked, because another consumer gets their messages again.
  static std::string refused_offsets(const rd_kafka_topic_partition_list_t& list);

  /// The number of messages after the last deliveries, as far as the client knows. It does not ask the broker.
  std::optional<std::uint64_t> lag(rd_kafka_t* client) const;

 private:
  std::map<std::pair<std::string, std::int32_t>, std::uint64_t> lanes_;
  std::uint64_t last_ =
      0;  ///< The last result of `lane_of`. Most messages are in the same partition as the previous one.
  std::vector<Partition> partitions_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
