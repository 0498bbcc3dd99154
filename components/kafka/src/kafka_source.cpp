#include "kafka_source.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <txinbox/error.hpp>

#include "kafka_error.hpp"
#include "record.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// The time between two polls of the client while `run` has no room. A rebalance waits for at most this time.
constexpr milliseconds longest_without_poll = 500ms;

constexpr milliseconds longest_close = 3s;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

int timeout_of(milliseconds wait) { return static_cast<int>(std::clamp(wait, 0ms, milliseconds(1h)).count()); }

}  // namespace

KafkaSource::KafkaSource(const KafkaOptions& options) : options_(options), name_("kafka " + joined(options.topics)) {
  check(options);
  open_client();
  if (has_dead_letters()) dead_letters_.emplace(options_);
}

KafkaSource::~KafkaSource() { close(); }

void KafkaSource::open_client() {
  Conf conf = make_consumer_conf(options_);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(conf.get(), on_rebalance);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  const std::lock_guard lock(mutex_);
  queue_.reset();  // the queue belongs to the previous client
  client_ = make_client(RD_KAFKA_CONSUMER, std::move(conf));
  rd_kafka_poll_set_consumer(client_.get());
  queue_.reset(rd_kafka_queue_get_consumer(client_.get()));
}

std::vector<Incoming> KafkaSource::poll(std::size_t max, milliseconds wait) {
  taken_.clear();
  if (!is_subscribed_ && !subscribe(wait)) return {};
  if (max == 0) {
    keep_membership(wait);
  } else {
    partitions_.set_all_paused_for_room(client_.get(), false);
    partitions_.seek_rewound(client_.get(), Clock::now());
    take(max, wait);
  }
  check_broker();
  if (refused_ != RD_KAFKA_RESP_ERR_NO_ERROR) throw_if_refused(std::exchange(refused_, {}), "consuming " + name_);
  reopen_after_fatal_error();
  // After a message was taken, its partition may have been revoked, or the client may have been replaced.
  std::erase_if(taken_, [this](const Incoming& incoming) { return !holds(incoming); });
  return std::exchange(taken_, {});
}

void KafkaSource::take(std::size_t max, milliseconds wait) {
  kept_.take(max, taken_, [this](const Incoming& incoming) { return partitions_.at(*incoming.lane).is_paused_by_run; });
  // The batch call of librdkafka is not used, because it loses its position when a partition is paused.
  wait = taken_.empty() ? unless_woken(wait) : 0ms;
  while (taken_.size() < max) {
    auto incoming = poll_client(wait);
    if (!incoming) return;
    taken_.push_back(std::move(*incoming));
    wait = 0ms;
  }
}

/// Polls the client although `run` has no room. The client handles a rebalance before it returns fetched messages.
void KafkaSource::keep_membership(milliseconds wait) {
  const auto next = last_poll_ + longest_without_poll - Clock::now();
  if (next > 0ms) {
    sleep(std::min(wait, std::chrono::ceil<milliseconds>(next)));
    return;
  }
  const bool is_full = kept_.is_full();
  if (is_full) partitions_.set_all_paused_for_room(client_.get(), true);
  if (auto incoming = poll_client(is_full ? unless_woken(wait) : 0ms)) kept_.add(std::move(*incoming));
}

std::optional<Incoming> KafkaSource::poll_client(milliseconds wait) {
  last_poll_ = Clock::now();
  const MessagePtr message(rd_kafka_consumer_poll(client_.get(), timeout_of(wait)));
  if (!message) return std::nullopt;
  const bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && !is_end) {
    consumer_error(*message);
    return std::nullopt;
  }
  contact();
  const std::uint64_t lane = partitions_.lane_of(rd_kafka_topic_name(message->rkt), message->partition);
  Partitions::Partition& partition = partitions_.at(lane);
  partition.is_at_end = is_end;
  if (is_end || !partition.is_assigned) return std::nullopt;
  if (partitions_.begins_again(lane, message->offset)) begin_again(lane, message->offset);
  if (!partitions_.passes(client_.get(), lane, message->offset)) return std::nullopt;
  return incoming_of(*message, lane, partition.epoch);
}

bool KafkaSource::subscribe(milliseconds wait) {
  std::vector<std::string> topics = options_.topics;
  if (has_dead_letters()) topics.push_back(options_.dead_letters);
  for (const std::string& topic : topics) {
    if (!topic.starts_with("^") && !topic_exists(topic, wait)) return false;
  }
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(options_.topics.size())));
  for (const std::string& topic : options_.topics) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  }
  const auto code = rd_kafka_subscribe(client_.get(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    throw Error(ErrorCode::invalid_argument, "Kafka: subscribing to " + name_ + ": " + describe(code));
  }
  is_subscribed_ = true;
  return true;
}

/// Returns false if the broker does not answer now.
bool KafkaSource::topic_exists(const std::string& topic, milliseconds wait) {
  auto topic_code = RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto start = Clock::now();
  const auto code = ask_for_topic(client_.get(), topic, timeout_of(std::max(wait, 1ms)), topic_code);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    static_cast<void>(poll_client(0ms));  // calls `on_error`
    if (refused_ != RD_KAFKA_RESP_ERR_NO_ERROR) throw_if_refused(std::exchange(refused_, {}), options_.brokers);
    throw_if_refused(code, options_.brokers);
    if (!std::exchange(has_warned_, true)) {
      report(SourceEventType::warning,
             "no broker of " + options_.brokers + " answers: " + describe(code) + "; the source keeps trying");
    }
    sleep(wait - std::chrono::duration_cast<milliseconds>(Clock::now() - start));
    return false;
  }
  contact();
  if (topic_code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) {
    sleep(std::min(wait, longest_without_poll));
    return false;
  }
  throw_if_refused(topic_code, "topic " + topic);
  return true;
}

void KafkaSource::acknowledge(std::span<const Incoming* const> messages) {
  std::map<std::uint64_t, std::int64_t> done;  // the offset to store for each lane
  for (const Incoming* message : messages) {
    if (holds(*message)) done[*message->lane] = record_of(*message).offset + 1;
  }
  if (done.empty()) return;
  const PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(done.size())));
  for (const auto& [lane, offset] : done) {
    const auto& partition = partitions_.at(lane);
    rd_kafka_topic_partition_list_add(list.get(), partition.topic.c_str(), partition.number)->offset = offset;
  }
  replace_greater_offsets(done);
  // The call succeeds if one offset is stored. So the code of each partition is examined.
  rd_kafka_offsets_store(client_.get(), list.get());
  const std::string refused = Partitions::refused_offsets(*list);
  if (!refused.empty()) report(SourceEventType::warning, "an offset was not stored: " + refused);
}

/// Replaces the group's offsets that are greater than these, once after each assignment. Such an offset is behind the
/// end of the log, and the client commits no stored offset that is less.
///
/// Other offsets are not committed here. A commit during a rebalance has an old generation. The broker refuses it, and
/// the client then gives all of its partitions back, not only those that move (seen with librdkafka 2.0.2).
void KafkaSource::replace_greater_offsets(const std::map<std::uint64_t, std::int64_t>& offsets) {
  constexpr int longest_question = 1000;
  const PartitionList group(rd_kafka_topic_partition_list_new(0));
  for (const auto& [lane, offset] : offsets) {
    const auto& partition = partitions_.at(lane);
    if (!partition.is_group_offset_known) {
      rd_kafka_topic_partition_list_add(group.get(), partition.topic.c_str(), partition.number);
    }
  }
  if (group->cnt == 0 || Clock::now() < next_question_) return;
  next_question_ = Clock::now() + 5s;
  if (rd_kafka_committed(client_.get(), group.get(), longest_question) != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  next_question_ = {};
  const PartitionList less(rd_kafka_topic_partition_list_new(0));
  for (const auto& each : std::span(group->elems, static_cast<std::size_t>(group->cnt))) {
    const std::uint64_t lane = partitions_.lane_of(each.topic, each.partition);
    if (each.err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    partitions_.at(lane).is_group_offset_known = true;
    const std::int64_t offset = offsets.at(lane);
    if (each.offset <= offset) continue;
    rd_kafka_topic_partition_list_add(less.get(), each.topic, each.partition)->offset = offset;
  }
  if (less->cnt > 0) rd_kafka_commit(client_.get(), less.get(), 1);
}

void KafkaSource::dead_letter(std::span<DeadLetter> letters) {
  // The consumer that now has a revoked partition gets its messages, and publishes their dead letters.
  std::vector<DeadLetter*> held;
  for (DeadLetter& letter : letters) {
    if (holds(*letter.incoming)) held.push_back(&letter);
  }
  if (held.empty()) return;
  const auto code = dead_letters_->publish(held);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  report(SourceEventType::warning,
         "a dead letter is not in topic " + options_.dead_letters + ": " + describe(code) +
             (is_too_large(code) ? "; raise max.message.bytes of the topic: a dead letter has more headers" : ""));
}

bool KafkaSource::holds(const Incoming& message) const {
  const auto& partition = partitions_.at(*message.lane);
  return partition.is_assigned && partition.epoch == message.ticket;
}

void KafkaSource::pause(std::uint64_t lane) { partitions_.set_paused_by_run(client_.get(), lane, true); }
void KafkaSource::resume(std::uint64_t lane) { partitions_.set_paused_by_run(client_.get(), lane, false); }

/// The client seeks at the first poll after the partition was resumed. What the source has of the partition comes again
/// after that.
void KafkaSource::rewind(const Incoming& first) {
  if (!holds(first)) return;
  partitions_.rewind(*first.lane, record_of(first).offset);
  forget_messages(*first.lane);
}

void KafkaSource::forget_messages(std::uint64_t lane) {
  kept_.forget(lane);
  std::erase_if(taken_, [&](const Incoming& each) { return each.lane == lane; });
}

void KafkaSource::wake() noexcept {
  const std::lock_guard lock(mutex_);
  is_woken_ = true;
  woken_up_.notify_one();
  if (queue_) rd_kafka_queue_yield(queue_.get());
}

milliseconds KafkaSource::unless_woken(milliseconds wait) {
  const std::lock_guard lock(mutex_);
  return std::exchange(is_woken_, false) ? 0ms : wait;
}

void KafkaSource::sleep(milliseconds wait) {
  std::unique_lock lock(mutex_);
  woken_up_.wait_for(lock, std::max(wait, 0ms), [&] { return is_woken_; });
  is_woken_ = false;
}

SourceStatus KafkaSource::status() {
  SourceStatus status{.name = name_,
                      .connected = is_connected_ && !is_closed_,
                      .lanes = partitions_.assigned_count(),
                      .reconnects = reconnects_};
  status.at_end = is_assigned_ && partitions_.are_at_end();
  if (client_) status.lag = partitions_.lag(client_.get());
  return status;
}

void KafkaSource::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  try {
    kept_.clear();
    if (!client_) return;  // the client could not be opened again after a fatal error
    // With a separate queue, the wait ends also if the broker does not answer.
    const Queue queue(rd_kafka_queue_new(client_.get()));
    if (rd_kafka_error_t* error = rd_kafka_consumer_close_queue(client_.get(), queue.get())) {
      rd_kafka_error_destroy(error);
    } else {
      const auto give_up = Clock::now() + longest_close;
      while (rd_kafka_consumer_closed(client_.get()) == 0 && Clock::now() < give_up) {
        const Event event(rd_kafka_queue_poll(queue.get(), 50));
        if (rd_kafka_event_type(event.get()) != RD_KAFKA_EVENT_REBALANCE) continue;
        rebalance(rd_kafka_event_error(event.get()), *rd_kafka_event_topic_partition_list(event.get()));
      }
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the broker redelivers the messages
  }
  forget_client();
}

/// Destroys the queue first, because the destruction of the client waits until its queue is destroyed. A client that
/// cannot be destroyed stays until the process ends. It has left the group. If a topic was deleted under the client,
/// the destruction waits for ever (seen with librdkafka 2.0.2), so it is not begun.
void KafkaSource::forget_client() {
  {
    const std::lock_guard lock(mutex_);
    queue_.reset();
  }
  if (has_missed_topic_ || (is_subscribed_ && !was_assigned_ && aborts_before_assignment(client_.get()))) {
    static_cast<void>(client_.release());
  }
  client_.reset();
  was_assigned_ = false;
  is_assigned_ = false;
  has_missed_topic_ = false;
}

}  // namespace kafka

std::unique_ptr<Source> open_kafka(const KafkaOptions& options) {
  return std::make_unique<kafka::KafkaSource>(options);
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
