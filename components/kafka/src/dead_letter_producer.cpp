#include "dead_letter_producer.hpp"

#include <cstddef>
#include <vector>

#include "kafka_error.hpp"
#include "shared/dead_letter_headers.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace kafka {
namespace {

Headers headers_of(const DeadLetter& letter) {
  const Incoming& incoming = *letter.incoming;
  const auto ours = component::dead_letter_headers(letter);
  Headers headers(rd_kafka_headers_new(incoming.headers.size() + ours.size()));
  for (const IncomingHeader& header : incoming.headers) {
    if (!component::is_one_of(ours, header.name)) add_header(headers, header.name, header.value);
  }
  for (const auto& [name, value] : ours) add_header(headers, name, value);
  return headers;
}

}  // namespace

rd_kafka_resp_err_t DeadLetterProducer::publish(std::span<DeadLetter* const> letters) {
  std::vector<OutgoingRecord> records;
  records.reserve(letters.size());
  for (const DeadLetter* letter : letters) {
    const Incoming& incoming = *letter->incoming;
    records.push_back({.topic = topic_, .key = incoming.key, .body = {}, .headers = headers_of(*letter)});
    if (incoming.has_body) records.back().body = incoming.body;
  }
  const auto codes = producer_.publish(records);
  auto problem = RD_KAFKA_RESP_ERR_NO_ERROR;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    letters[i]->confirmed = codes[i] == RD_KAFKA_RESP_ERR_NO_ERROR;
    if (problem == RD_KAFKA_RESP_ERR_NO_ERROR) problem = producer_.cause_of(codes[i]);
  }
  throw_if_refused(problem, "dead-letter topic " + topic_);
  return problem;
}

}  // namespace kafka
TXINBOX_NAMESPACE_END
}  // namespace txinbox
