#include "confirmed_producer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "kafka_error.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

/// Raises the client's limit of 1 MB, so that only the broker limits the size of a record.
KafkaOptions with_large_messages(KafkaOptions options) {
  options.properties.try_emplace("message.max.bytes", "1000000000");
  return options;
}

/// Passes the bytes to librdkafka, which copies them and does not change them.
decltype(rd_kafka_vu_t::u.mem) memory_of(const std::optional<std::string_view>& bytes) {
  if (!bytes) return {.ptr = nullptr, .size = 0};
  static const char nothing = 0;  // a null pointer would mean that there is no value
  const char* data = bytes->data() == nullptr ? &nothing : bytes->data();
  return {.ptr = const_cast<char*>(data), .size = bytes->size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

}  // namespace

void add_header(const Headers& headers, std::string_view name, std::string_view value) {
  rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                      static_cast<ssize_t>(value.size()));
}

ConfirmedProducer::ConfirmedProducer(const KafkaOptions& options, MissingTopic missing)
    : options_(with_large_messages(options)), missing_(missing) {
  open();
}

void ConfirmedProducer::open() {
  Conf conf = make_conf(options_);
  set(conf.get(), "enable.idempotence", "true");
  set(conf.get(), "acks", "all");
  set(conf.get(), "linger.ms", "1");
  if (missing_ == MissingTopic::is_refused) set(conf.get(), "allow.auto.create.topics", "false");
  set(conf.get(), "message.timeout.ms", std::to_string(options_.dead_letter_timeout.count()));
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_report);
  producer_ = make_client(RD_KAFKA_PRODUCER, std::move(conf));
}

/// librdkafka calls it inside `rd_kafka_poll`, once for each record that it has accepted.
void ConfirmedProducer::on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto& producer = *static_cast<ConfirmedProducer*>(self);
  const auto id =
      reinterpret_cast<std::uintptr_t>(message->_private);  // NOLINT: `produce` has converted it from an integer
  const std::uintptr_t index = id - producer.first_id_;
  if (index >= producer.codes_.size()) return;  // the record belongs to an earlier call, whose wait is over
  producer.codes_[index] = message->err;
  --producer.waiting_;
}

rd_kafka_resp_err_t ConfirmedProducer::produce(const OutgoingRecord& record, std::uintptr_t id) {
  Headers headers(rd_kafka_headers_copy(record.headers.get()));  // librdkafka owns them if it accepts the record
  std::array<rd_kafka_vu_t, 6> values{};
  values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  values[0].u.cstr = record.topic.c_str();
  values[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  values[1].u.i = RD_KAFKA_MSG_F_COPY;
  values[2].vtype = RD_KAFKA_VTYPE_VALUE;
  values[2].u.mem = memory_of(record.body);
  values[3].vtype = RD_KAFKA_VTYPE_KEY;
  values[3].u.mem = memory_of(record.key);
  values[4].vtype = RD_KAFKA_VTYPE_HEADERS;
  values[4].u.headers = headers.get();
  values[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
  values[5].u.ptr = reinterpret_cast<void*>(id);  // NOLINT: librdkafka does not dereference it
  rd_kafka_error_t* error = rd_kafka_produceva(producer_.get(), values.data(), values.size());
  if (error == nullptr) {
    static_cast<void>(headers.release());
    return RD_KAFKA_RESP_ERR_NO_ERROR;
  }
  const auto code = rd_kafka_error_code(error);
  rd_kafka_error_destroy(error);
  return code;
}

bool ConfirmedProducer::has_fatal_error() const {
  return rd_kafka_fatal_error(producer_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR;
}

bool ConfirmedProducer::reaches_broker() {
  const rd_kafka_metadata_t* metadata = nullptr;
  if (rd_kafka_metadata(producer_.get(), 0, nullptr, &metadata, 1'000) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
  rd_kafka_metadata_destroy(metadata);
  return true;
}

std::vector<rd_kafka_resp_err_t> ConfirmedProducer::publish(std::span<const OutgoingRecord> records,
                                                            Clock::time_point give_up) {
  auto codes = publish_once(records, give_up);
  if (records.size() == 1) return codes;
  // A new attempt would open a new producer, and `cause_of` would no longer find the fatal error of this one.
  for (std::size_t i = 0; i < records.size() && !has_fatal_error(); ++i) {
    if (is_too_large(codes[i])) codes[i] = publish_once(records.subspan(i, 1), give_up).front();
  }
  return codes;
}

std::vector<rd_kafka_resp_err_t> ConfirmedProducer::publish_once(std::span<const OutgoingRecord> records,
                                                                 Clock::time_point give_up) {
  // After a fatal error, the producer accepts no more records. The error can occur after the reports of the last call.
  if (has_fatal_error()) open();
  first_id_ += codes_.size();
  codes_.assign(records.size(), RD_KAFKA_RESP_ERR__TIMED_OUT);
  waiting_ = 0;
  const auto in_time = [&] { return Clock::now() < give_up; };
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto code = produce(records[i], first_id_ + i);
    // The producer's queue has room again after a report was read.
    while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && in_time()) {
      rd_kafka_poll(producer_.get(), 50);
      code = produce(records[i], first_id_ + i);
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++waiting_;
    } else {
      codes_[i] = code;
    }
  }
  while (waiting_ > 0 && in_time()) rd_kafka_poll(producer_.get(), 50);
  return codes_;
}

rd_kafka_resp_err_t ConfirmedProducer::cause_of(rd_kafka_resp_err_t code) const {
  if (code >= RD_KAFKA_RESP_ERR_UNKNOWN) return code;
  const auto fatal = rd_kafka_fatal_error(producer_.get(), nullptr, 0);
  return fatal == RD_KAFKA_RESP_ERR_NO_ERROR ? code : fatal;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
