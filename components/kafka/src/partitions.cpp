#include "partitions.hpp"

#include <algorithm>
#include <chrono>
#include <span>

#include "kafka_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using Partition = Partitions::Partition;

std::span<const rd_kafka_topic_partition_t> elements(const rd_kafka_topic_partition_list_t& list) {
  return {list.elems, static_cast<std::size_t>(list.cnt)};
}

void change(rd_kafka_t* client, const std::vector<const Partition*>& partitions, bool pause) {
  if (partitions.empty()) return;
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const Partition* each : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), each->topic.c_str(), each->number);
  }
  if (pause) {
    rd_kafka_pause_partitions(client, list.get());
  } else {
    rd_kafka_resume_partitions(client, list.get());
  }
}

/// Lets the client read again from the offset that was asked for. The partition must not be paused. The call does
/// not wait, because librdkafka before 2.1 divides its timeout by a thousand.
void seek(rd_kafka_t* client, Partition& partition, Rewind::Time now = std::chrono::steady_clock::now()) {
  const PartitionList list(rd_kafka_topic_partition_list_new(1));
  auto* element = rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.number);
  element->offset = partition.rewind.offset();
  if (rd_kafka_error_t* error = rd_kafka_seek_partitions(client, list.get(), 0)) rd_kafka_error_destroy(error);
  partition.rewind.has_sought(now);
  partition.is_at_end = false;
}

}  // namespace

std::uint64_t Partitions::lane_of(std::string_view topic, std::int32_t number) {
  if (last_ < partitions_.size() && partitions_[last_].number == number && partitions_[last_].topic == topic) {
    return last_;
  }
  const auto [found, is_new] = lanes_.try_emplace({std::string(topic), number}, partitions_.size());
  if (is_new) partitions_.push_back({.topic = std::string(topic), .number = number});
  last_ = found->second;
  return last_;
}

void Partitions::assigned(const rd_kafka_topic_partition_list_t& list) {
  for (const auto& each : elements(list)) {
    Partition& partition = at(lane_of(each.topic, each.partition));
    ++partition.epoch;
    partition.is_assigned = true;
    partition.delivered = RD_KAFKA_OFFSET_INVALID;
    partition.is_group_offset_known = false;
    partition.is_at_end = false;
    partition.rewind.forget();
  }
}

void Partitions::revoked(rd_kafka_t* client, const rd_kafka_topic_partition_list_t& list) {
  std::vector<const Partition*> paused;
  for (const auto& each : elements(list)) {
    Partition& partition = at(lane_of(each.topic, each.partition));
    if (partition.is_paused()) paused.push_back(&partition);
  }
  change(client, paused, false);
  for (const auto& each : elements(list)) {
    Partition& partition = at(lane_of(each.topic, each.partition));
    ++partition.epoch;
    partition.is_assigned = false;
    partition.is_paused_by_run = false;
    partition.is_paused_for_room = false;
    partition.rewind.forget();
  }
}

void Partitions::set_paused_by_run(rd_kafka_t* client, std::uint64_t lane, bool paused) {
  Partition& partition = at(lane);
  if (!partition.is_assigned || partition.is_paused_by_run == paused) return;
  partition.is_paused_by_run = paused;
  if (partition.is_paused_for_room) return;
  change(client, {&partition}, paused);
}

void Partitions::set_all_paused_for_room(rd_kafka_t* client, bool paused) {
  std::vector<const Partition*> changed;
  for (Partition& partition : partitions_) {
    if (!partition.is_assigned || partition.is_paused_for_room == paused) continue;
    partition.is_paused_for_room = paused;
    if (!partition.is_paused_by_run) changed.push_back(&partition);
  }
  change(client, changed, paused);
}

void Partitions::rewind(std::uint64_t lane, std::int64_t offset) {
  Partition& partition = at(lane);
  partition.rewind.ask(offset);
  partition.delivered = partition.rewind.offset();
}

bool Partitions::passes(rd_kafka_t* client, std::uint64_t lane, std::int64_t offset) {
  Partition& partition = at(lane);
  const Rewind::Verdict verdict = partition.rewind.judge(offset);
  if (verdict == Rewind::Verdict::seek) seek(client, partition);
  if (verdict == Rewind::Verdict::pass) partition.delivered = offset + 1;
  return verdict == Rewind::Verdict::pass;
}

bool Partitions::begins_again(std::uint64_t lane, std::int64_t offset) const {
  // Before the seek of a rewind, the next message can only be dropped.
  const Partition& partition = at(lane);
  return partition.delivered >= 0 && offset < partition.delivered && !partition.rewind.must_seek();
}

void Partitions::begin_again(rd_kafka_t* client, std::uint64_t lane, std::int64_t offset) {
  Partition& partition = at(lane);
  std::int64_t start = RD_KAFKA_OFFSET_INVALID;
  std::int64_t end = RD_KAFKA_OFFSET_INVALID;
  rd_kafka_get_watermark_offsets(client, partition.topic.c_str(), partition.number, &start, &end);
  if (start < 0 || start > offset) start = offset;
  ++partition.epoch;
  partition.rewind.forget();
  partition.delivered = start;
  const PartitionList list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.number)->offset = start;
  rd_kafka_commit(client, list.get(), 1);
  if (start == offset) return;
  // auto.offset.reset is latest.
  partition.rewind.ask(start);
  seek(client, partition);
}

void Partitions::seek_rewound(rd_kafka_t* client, Rewind::Time now) {
  for (Partition& partition : partitions_) {
    const bool must = partition.rewind.must_seek() || partition.rewind.is_late(now);
    if (must && partition.is_assigned && !partition.is_paused()) seek(client, partition, now);
  }
}

std::string Partitions::names_of(const rd_kafka_topic_partition_list_t& list) {
  constexpr int longest = 8;
  if (list.cnt > longest) return std::to_string(list.cnt) + " partitions";
  std::string text;
  for (const auto& each : elements(list)) {
    text += (text.empty() ? "" : " ") + std::string(each.topic) + "/" + std::to_string(each.partition);
  }
  return text.empty() ? "no partitions" : text;
}

std::string Partitions::refused_offsets(const rd_kafka_topic_partition_list_t& list) {
  std::string text;
  for (const auto& each : elements(list)) {
    if (each.err == RD_KAFKA_RESP_ERR_NO_ERROR || each.err == RD_KAFKA_RESP_ERR__STATE) continue;
    text += (text.empty() ? "" : ", ") + std::string(each.topic) + "/" + std::to_string(each.partition) + ": " +
            describe(each.err);
  }
  return text;
}

std::size_t Partitions::assigned_count() const {
  return static_cast<std::size_t>(std::ranges::count_if(partitions_, &Partition::is_assigned));
}

bool Partitions::are_at_end() const {
  return std::ranges::none_of(partitions_, [](const Partition& each) { return each.is_assigned && !each.is_at_end; });
}

std::optional<std::uint64_t> Partitions::lag(rd_kafka_t* client) const {
  std::optional<std::uint64_t> sum;
  for (const Partition& partition : partitions_) {
    if (!partition.is_assigned || partition.delivered < 0) continue;
    std::int64_t low = 0;
    std::int64_t high = 0;
    rd_kafka_get_watermark_offsets(client, partition.topic.c_str(), partition.number, &low, &high);
    if (high >= partition.delivered) sum = sum.value_or(0) + static_cast<std::uint64_t>(high - partition.delivered);
  }
  return sum;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
