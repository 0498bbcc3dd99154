#include "dead_letter_producer.hpp"

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "kafka_error.hpp"
#include "record.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

using namespace std::chrono_literals;

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

}  // namespace

DeadLetterProducer::DeadLetterProducer(const KafkaOptions& options) : options_(options) { open(); }

void DeadLetterProducer::open() {
  KafkaOptions options = options_;
  // The broker's own limit counts. With the client's of 1 MB, a message that is as large as the broker takes would have
  // no room for the headers.
  options.properties.try_emplace("message.max.bytes", "1000000000");
  Conf conf = make_conf(options);
  set(conf.get(), "enable.idempotence", "true");
  set(conf.get(), "acks", "all");
  set(conf.get(), "linger.ms", "0");
  set(conf.get(), "message.timeout.ms", std::to_string(options.dead_letter_timeout.count()));
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_report);
  producer_ = make_client(RD_KAFKA_PRODUCER, std::move(conf));
}

/// librdkafka calls it inside `rd_kafka_poll`.
void DeadLetterProducer::on_report(rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
  auto& producer = *static_cast<DeadLetterProducer*>(self);
  const Id id = reinterpret_cast<Id>(message->_private);  // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast)
  if (producer.waiting_.erase(id) != 0) producer.reports_[id] = message->err;
}

rd_kafka_resp_err_t DeadLetterProducer::produce(const DeadLetter& letter, Id id) {
  rd_kafka_headers_t* headers = headers_of(letter);
  const Incoming& incoming = *letter.incoming;
  std::array<rd_kafka_vu_t, 6> values{};
  values[0].vtype = RD_KAFKA_VTYPE_TOPIC;
  values[0].u.cstr = options_.dead_letters.c_str();
  values[1].vtype = RD_KAFKA_VTYPE_MSGFLAGS;
  values[1].u.i = RD_KAFKA_MSG_F_COPY;
  values[2].vtype = RD_KAFKA_VTYPE_VALUE;
  values[2].u.mem = memory_of(incoming.body, incoming.has_body);
  values[3].vtype = RD_KAFKA_VTYPE_KEY;
  values[3].u.mem = memory_of(incoming.key.value_or(std::string_view()), incoming.key.has_value());
  values[4].vtype = RD_KAFKA_VTYPE_HEADERS;
  values[4].u.headers = headers;
  values[5].vtype = RD_KAFKA_VTYPE_OPAQUE;
  values[5].u.ptr = reinterpret_cast<void*>(id);  // NOLINT: librdkafka only gives it back
  rd_kafka_error_t* error = rd_kafka_produceva(producer_.get(), values.data(), values.size());
  if (error == nullptr) return RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto code = rd_kafka_error_code(error);
  rd_kafka_error_destroy(error);
  rd_kafka_headers_destroy(headers);
  return code;
}

rd_kafka_resp_err_t DeadLetterProducer::publish(std::span<DeadLetter> letters) {
  waiting_.clear();
  reports_.clear();
  const Id first = last_id_ + 1;
  for (const DeadLetter& letter : letters) {
    const Id id = ++last_id_;
    const auto code = produce(letter, id);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      waiting_.insert(id);
    } else {
      reports_[id] = code;
    }
  }
  const auto give_up = std::chrono::steady_clock::now() + options_.dead_letter_timeout + 1s;
  while (!waiting_.empty() && std::chrono::steady_clock::now() < give_up) rd_kafka_poll(producer_.get(), 50);

  auto problem = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto report = reports_.find(first + i);
    const auto code = report == reports_.end() ? RD_KAFKA_RESP_ERR__TIMED_OUT : report->second;
    letters[i].confirmed = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (problem == RD_KAFKA_RESP_ERR_NO_ERROR) problem = code;
  }
  // After a fatal error the producer takes nothing any more.
  if (const auto fatal = rd_kafka_fatal_error(producer_.get(), nullptr, 0); fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
    if (problem != RD_KAFKA_RESP_ERR_NO_ERROR) problem = fatal;
    open();
  }
  throw_if_refused(problem, "dead-letter topic " + options_.dead_letters);
  return problem;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
