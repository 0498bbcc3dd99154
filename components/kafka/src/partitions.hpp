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

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {

/// The partitions that this consumer has or had. A partition's place in the table is its lane.
///
/// It also knows which partitions are paused at the client, and why. A pause that outlives a revoke silently stops the
/// partition when it is assigned again; to resume what is not paused can set it back. So a partition is resumed once,
/// when its last reason ends.
class Partitions {
 public:
  struct Partition {
    std::string topic;
    std::int32_t number;
    std::uint64_t epoch = 0;  ///< Counts assignments: deliveries of an earlier one are not held any more.
    bool is_assigned = false;
    bool is_paused_by_run = false;
    bool is_paused_for_room = false;
    std::int64_t delivered = RD_KAFKA_OFFSET_INVALID;  ///< The offset behind the last delivery.

    bool is_paused() const { return is_paused_by_run || is_paused_for_room; }
  };

  std::uint64_t lane_of(std::string_view topic, std::int32_t number);
  Partition& at(std::uint64_t lane) { return partitions_.at(lane); }
  const Partition& at(std::uint64_t lane) const { return partitions_.at(lane); }
  const std::vector<Partition>& all() const { return partitions_; }

  void assigned(const rd_kafka_topic_partition_list_t& list);

  /// Also resumes at the client what was paused.
  void revoked(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& list);

  /// Both pause or resume at the client if the other reason does not hold.
  void set_paused_by_run(rd_kafka_t* client, std::uint64_t lane, bool paused);
  void set_all_paused_for_room(rd_kafka_t* client, bool paused);

  std::size_t assigned_count() const;

  /// "orders/0 orders/3", or how many there are.
  static std::string names_of(const rd_kafka_topic_partition_list_t& list);

  /// The messages behind the last deliveries, as far as the client has heard; it does not ask the broker.
  std::optional<std::uint64_t> lag(rd_kafka_t* client) const;

 private:
  std::map<std::pair<std::string, std::int32_t>, std::uint64_t> lanes_;
  std::uint64_t last_ = 0;  ///< That `lane_of` has found: most messages are in the partition of the one before.
  std::vector<Partition> partitions_;
};

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
