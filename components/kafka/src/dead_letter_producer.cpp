#include "dead_letter_producer.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "kafka_error.hpp"
#include "record.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using namespace std::chrono_literals;

/// The report on one dead letter. It may come after `publish` has given up waiting.
struct Report {
  bool is_there = false;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
};
using ReportPtr = std::shared_ptr<Report>;

void on_report(rd_kafka_t*, const rd_kafka_message_t* message, void*) {
  const std::unique_ptr<ReportPtr> report(static_cast<ReportPtr*>(message->_private));
  (*report)->is_there = true;
  (*report)->code = message->err;
}

Client make_producer(const KafkaOptions& options) {
  Conf conf = make_conf(options);
  set(conf.get(), "enable.idempotence", "true");
  set(conf.get(), "acks", "all");
  set(conf.get(), "linger.ms", "0");
  set(conf.get(), "message.timeout.ms", std::to_string(options.dead_letter_timeout.count()));
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_report);
  return make_client(RD_KAFKA_PRODUCER, std::move(conf));
}

rd_kafka_headers_t* headers_of(const DeadLetter& letter) {
  const Incoming& incoming = *letter.incoming;
  rd_kafka_headers_t* headers = rd_kafka_headers_new(incoming.headers.size() + 6);
  const auto add = [&](std::string_view name, std::string_view value) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  };
  for (const IncomingHeader& header : incoming.headers) add(header.name, header.value);
  add("txinbox-reason", letter.reason);
  add("txinbox-error-class", letter.error_class);
  add("txinbox-consumer", letter.consumer);
  add("txinbox-key", letter.business_key);
  add("txinbox-origin", incoming.id);
  add("txinbox-failures", std::to_string(letter.failures));
  return headers;
}

/// The bytes as librdkafka takes them. It copies them, and does not change them.
decltype(rd_kafka_vu_t::u.mem) memory_of(std::string_view bytes, bool is_there) {
  if (!is_there) return {.ptr = nullptr, .size = 0};
  static const char nothing = 0;  // a null pointer would be a value that is not there
  const char* data = bytes.data() == nullptr ? &nothing : bytes.data();
  return {.ptr = const_cast<char*>(data), .size = bytes.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

/// Returns no report if the message could not be queued.
ReportPtr produce(rd_kafka_t* producer, const std::string& topic, const DeadLetter& letter) {
  auto report = std::make_shared<Report>();
  auto private_report = std::make_unique<ReportPtr>(report);
  rd_kafka_headers_t* headers = headers_of(letter);
  const Incoming& incoming = *letter.incoming;
  std::array<rd_kafka_vu_t, 6> values{};
  values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  values[0].u.cstr = topic.c_str();
  values[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  values[1].u.i = RD_KAFKA_MSG_F_COPY;
  values[2].vtype = RD_KAFKA_VTYPE_VALUE;
  values[2].u.mem = memory_of(incoming.body, incoming.has_body);
  values[3].vtype = RD_KAFKA_VTYPE_KEY;
  values[3].u.mem = memory_of(incoming.key.value_or(std::string_view()), incoming.key.has_value());
  values[4].vtype = RD_KAFKA_VTYPE_HEADERS;
  values[4].u.headers = headers;
  values[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
  values[5].u.ptr = private_report.get();
  if (rd_kafka_error_t* error = rd_kafka_produceva(producer, values.data(), values.size())) {
    rd_kafka_error_destroy(error);
    rd_kafka_headers_destroy(headers);
    return nullptr;
  }
  static_cast<void>(private_report.release());  // `on_report` destroys it
  return report;
}

}  // namespace

DeadLetterProducer::DeadLetterProducer(const KafkaOptions& options)
    : options_(options), producer_(make_producer(options)) {}

void DeadLetterProducer::publish(std::span<DeadLetter> letters) {
  if (rd_kafka_fatal_error(producer_.get(), nullptr, 0) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    producer_ = make_producer(options_);  // the one before publishes nothing any more
  }
  std::vector<ReportPtr> reports;
  reports.reserve(letters.size());
  for (const DeadLetter& letter : letters) reports.push_back(produce(producer_.get(), options_.dead_letters, letter));

  const auto give_up = std::chrono::steady_clock::now() + options_.dead_letter_timeout + 1s;
  const auto is_waiting = [&] {
    for (const ReportPtr& report : reports) {
      if (report && !report->is_there) return true;
    }
    return false;
  };
  while (is_waiting() && std::chrono::steady_clock::now() < give_up) rd_kafka_poll(producer_.get(), 50);

  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!reports[i] || !reports[i]->is_there) continue;
    throw_if_refused(reports[i]->code, "dead-letter topic " + options_.dead_letters);
    letters[i].confirmed = reports[i]->code == RD_KAFKA_RESP_ERR_NO_ERROR;
  }
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
